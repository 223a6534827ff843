"""AG-UI resume entries: decisions about the interrupts that a run ended with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from vitehub_chat.agent.agent import Agent
from vitehub_chat.errors import InputError
from vitehub_chat.web.access import Access, Place
from vitehub_chat.web.principals import Principal

NEWEST: Final = 100
"""Among so many of the newest messages the one that asked is looked for."""


@attrs.frozen(kw_only=True)
class Settled:
    """What resume entries come to.

    Attributes:
        message_id: The stored answer that asked.
        parts: Its calls with their decisions.
    """

    message_id: str
    parts: Sequence[dict[str, Any]]


class Resumer:
    """Finds what resume entries are about; only stored answers can have asked."""

    def __init__(self, agent: Agent, access: Access) -> None:
        self._agent = agent
        self._access = access

    async def settle(
        self, entries: Sequence[object], place: Place, principal: Principal
    ) -> Settled | None:
        """Return the decisions of resume entries, or None without any.

        Raises:
            InputError: One of them is none, or is about an interrupt that nobody waits for an
                answer to (`unknown_tool_call`).
            NotFoundError: There is no such conversation, or it is not the caller's.
        """
        decisions = dict(_read_entry(entry, index) for index, entry in enumerate(entries))
        if not decisions:
            return None
        if await self._agent.runtime().open_state() is None:
            raise _unknown("decisions need a state")
        conversation = (await self._access.open(principal, place)).conversation
        page = await conversation.history(limit=NEWEST)
        for row in reversed(page.items):
            parts = row.message.to_json()["parts"] if row.message.role == "assistant" else ()
            asked = {found: part for part in parts if (found := _approval_id(part)) is not None}
            if decisions.keys() <= asked.keys():
                return Settled(
                    message_id=row.message.id or "",
                    parts=[_decided(asked[each], facts) for each, facts in decisions.items()],
                )
        raise _unknown("load the history again")


def _read_entry(entry: object, index: int) -> tuple[str, dict[str, Any]]:
    """Return the id of an interrupt, and what was decided; whoever gives up denies."""
    path = f"resume[{index}]"
    if not isinstance(entry, Mapping):
        raise InputError("an entry is a mapping", path=path)
    found = entry.get("interruptId", entry.get("interrupt_id"))
    if not isinstance(found, str) or not found:
        raise InputError("is needed", path=f"{path}.interruptId")
    status, payload = entry.get("status"), entry.get("payload")
    if status == "cancelled":
        return found, {"id": found, "approved": False}
    if status != "resolved":
        raise InputError("is 'resolved' or 'cancelled'", path=f"{path}.status")
    facts = payload if isinstance(payload, Mapping) else {"approved": payload}
    if not isinstance(facts.get("approved"), bool):
        raise InputError("needs 'approved', true or false", path=f"{path}.payload")
    names = ("approved", "reason")
    return found, {
        "id": found,
        **{name: facts[name] for name in names if isinstance(facts.get(name), str | bool)},
    }


def _approval_id(part: Mapping[str, Any]) -> str | None:
    approval = part.get("approval")
    found = approval.get("id") if isinstance(approval, Mapping) else None
    return found if isinstance(found, str) else None


def _decided(part: Mapping[str, Any], decision: Mapping[str, Any]) -> dict[str, Any]:
    names = ("type", "toolName", "toolCallId")
    kept = {name: part[name] for name in names if name in part}
    return {**kept, "state": "approval-responded", "approval": dict(decision)}


def _unknown(hint: str) -> InputError:
    return InputError(
        "answers an interrupt that nobody recorded",
        path="resume",
        code="unknown_tool_call",
        hint=hint,
    )
