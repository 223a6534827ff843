"""Material: conversations of their own, and messages to store in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from vitehub_chat.model.ids import new_id
from vitehub_chat.model.json_text import JsonObject
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import NO_METADATA, Message
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.model.rows import Row, RowStatus
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import NewRow, SessionRequest

AGENT: Final = "helper"
MANUAL: Final = SessionPolicy()
FOREVER: Final[Mapping[str, Any]] = {"transcripts": {"retention": "forever"}}
"""Options of a state that keeps everything."""
FOR_AN_HOUR: Final[Mapping[str, Any]] = {"transcripts": {"retention": "1h"}}
"""Options of a state that keeps messages for an hour."""


def new_tenant() -> str:
    """Return a tenant that no other check has, so that all may share a store."""
    return f"check {new_id()}"


def new_key(thread: str | None = "t1") -> ConversationKey:
    """Return a conversation that no other check has."""
    return ConversationKey(new_tenant(), AGENT, "portal", thread)


def row(
    message_id: str,
    text: str = "hi",
    *,
    role: str = "user",
    metadata: JsonObject = NO_METADATA,
    created_at: datetime | None = None,
    status: RowStatus = "complete",
    is_shown: bool = True,
) -> NewRow:
    """Return a message to store."""
    parts = ({"type": "text", "text": text},)
    message = Message(message_id, role, parts, metadata, created_at)
    return NewRow(message=message, status=status, is_shown=is_shown)


def rows(*message_ids: str) -> list[NewRow]:
    """Return short messages of these ids."""
    return [row(each) for each in message_ids]


def numbered(count: int, *, after: int = 0) -> list[NewRow]:
    """Return messages `m1`, `m2`, … of a user."""
    return rows(*(f"m{number}" for number in range(after + 1, after + count + 1)))


async def append(
    state: AgentState, key: ConversationKey, *message_ids: str, **session: Any
) -> Sequence[Row]:
    """Store short messages in a conversation, by default in its unnamed session."""
    request = SessionRequest(conversation=key, **session)
    return await state.transcripts.append(request, rows=rows(*message_ids))


async def stored(
    state: AgentState, key: ConversationKey, session_id: str | None = None
) -> list[Row]:
    """Return everything that is stored in a conversation, or in one of its sessions."""
    exported = state.transcripts.export(key, session_id=session_id)
    return [each async for batch in exported for each in batch.rows]


async def stored_ids(
    state: AgentState, key: ConversationKey, session_id: str | None = None
) -> list[str]:
    """Return the ids of everything that is stored."""
    return ids_of(await stored(state, key, session_id))


def ids_of(found: Iterable[Row]) -> list[str]:
    """Return the message ids of rows."""
    return [each.message.id or "" for each in found]


def numbers_of(found: Iterable[Row]) -> list[int]:
    """Return the numbers of rows."""
    return [each.seq for each in found]
