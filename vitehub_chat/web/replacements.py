"""Replacements: which stored messages a turn takes the place of, as its client asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vitehub_chat.agent.agent import Agent
from vitehub_chat.errors import InputError, NotFoundError
from vitehub_chat.model.keys import check_id
from vitehub_chat.web.access import Access, Place
from vitehub_chat.web.principals import Principal
from vitehub_chat.web.sanitising import role_of
from vitehub_chat.web.wire import TurnBody

AROUND = 3
"""A message with its neighbours."""


class ReplacementFinder:
    """Finds out what a client wants changed or answered anew."""

    def __init__(self, agent: Agent, access: Access) -> None:
        self._agent = agent
        self._access = access

    async def find(
        self, turn: TurnBody, place: Place, principal: Principal
    ) -> Mapping[str, str] | None:
        """Return the input `replace` of a turn, or None for a new message.

        An edit names a stored message of the user. An answer is made anew by its id, by that of
        the message it answers, or without an id; a message that has no answer is just run. An
        answer that comes back with outputs of tools or decisions goes on.

        Raises:
            InputError: The id cannot be one, names a message of the other kind, or an answer that
                comes back has another id or none.
            NotFoundError: There is no such message.
            StateError: The state failed.
        """
        wanted, current = turn.message_id, _current_id(turn)
        if wanted is not None:
            check_id(wanted, "messageId")
        if turn.trigger == "submit-message":
            if turn.messages and role_of(turn.messages[-1]) == "assistant":
                return find_continued(turn.messages, turn.message_id)
            if wanted is None:
                return None
            await self._check_role(wanted, "user", place, principal)
            return {"kind": "edit", "message_id": wanted}
        if wanted is not None and wanted != current:
            await self._check_role(wanted, "assistant", place, principal)
            return {"kind": "regenerate", "message_id": wanted}
        return await self._answer_of(current, place, principal)

    async def _answer_of(
        self, current: str | None, place: Place, principal: Principal
    ) -> Mapping[str, str] | None:
        if current is None:
            return None
        if not await self._has_state():
            return {"kind": "regenerate", "message_id": current}
        try:
            conversation = (await self._access.open(principal, place)).conversation
            page = await conversation.history(limit=AROUND, around=current)
        except NotFoundError:
            return None
        ids = [row.message.id for row in page.items]
        after = page.items[ids.index(current) + 1 :]
        if after and after[0].message.role == "assistant" and after[0].message.id is not None:
            return {"kind": "regenerate", "message_id": after[0].message.id}
        return {"kind": "edit", "message_id": current}

    async def _check_role(
        self, message_id: str, role: str, place: Place, principal: Principal
    ) -> None:
        if not await self._has_state():
            return
        conversation = (await self._access.open(principal, place)).conversation
        page = await conversation.history(limit=1, around=message_id)
        if page.items[0].message.role != role:
            whose = "the user" if role == "user" else "the assistant"
            raise InputError(f"is no message of {whose}", path="messageId")

    async def _has_state(self) -> bool:
        return await self._agent.runtime().open_state() is not None


def find_continued(
    messages: Sequence[Any], message_id: str | None = None
) -> Mapping[str, str] | None:
    """Return the input `replace` of an answer that comes back, or None for another message.

    Raises:
        InputError: It has no id, one that cannot be any, or another one than `message_id`.
    """
    if not messages or role_of(messages[-1]) != "assistant":
        return None
    given = messages[-1].get("id")
    if not isinstance(given, str) or not given:
        path = f"messages[{len(messages) - 1}].id"
        raise InputError("is needed, as this answer is to go on", path=path)
    if message_id not in {None, given}:
        raise InputError("is not the id of the answer that comes back", path="messageId")
    return {"kind": "continue", "message_id": check_id(given, "messageId")}


def _current_id(turn: TurnBody) -> str | None:
    last: Any = turn.messages[-1] if turn.messages else None
    found = last.get("id") if isinstance(last, Mapping) and last.get("role") == "user" else None
    return (
        check_id(found, f"messages[{len(turn.messages) - 1}].id")
        if isinstance(found, str) and found
        else None
    )
