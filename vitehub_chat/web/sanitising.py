"""Sanitising: taking out of a client's messages what only trusted code may say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import attrs

from vitehub_chat.errors import InputError
from vitehub_chat.model.messages import Message
from vitehub_chat.model.ui_messages import read_messages

ROLES: Final = frozenset({"user", "assistant"})
"""Whose messages a client may supply."""

_SESSION_IDS = frozenset({"sessionId", "session_id", "chatSessionId", "chat_session_id"})
_MARKERS = frozenset({"summary", "compaction", "compacted"})


def sanitise(
    given: Sequence[object],
    *,
    metadata_key: str | None,
    now: datetime,
    ends_with: Literal["user", "assistant"] = "user",
) -> tuple[Message, ...]:
    """Return a client's messages, oldest first, the new one last and at the time of the server.

    Left out are messages of other roles than user and assistant, marks of summaries and
    compaction, every place of a session id, and `metadata.chat`.

    Args:
        given: The messages as they came.
        metadata_key: Where the agent looks for session ids, too.
        now: The time of the server.
        ends_with: Whose message comes last: a new one of the user, or an answer that goes on.

    Raises:
        InputError: One of them is no message, or the last one is somebody else's
            (`no_user_message`).
    """
    messages = [
        _clean(message, metadata_key) for message in read_messages(given) if message.role in ROLES
    ]
    if not messages or messages[-1].role != ends_with or role_of(given[-1]) != ends_with:
        raise InputError(
            "needs to end with a message of the user", path="messages", code="no_user_message"
        )
    return (*messages[:-1], attrs.evolve(messages[-1], created_at=now))


def role_of(message: object) -> object:
    """Return the role of a message as it came, or None."""
    return message.get("role") if isinstance(message, Mapping) else None


def _clean(message: Message, metadata_key: str | None) -> Message:
    parts = tuple(part for part in message.parts if not _is_mark(part))
    return attrs.evolve(
        message, parts=parts, metadata=_clean_metadata(message.metadata, metadata_key)
    )


def _clean_metadata(metadata: Mapping[str, Any], metadata_key: str | None) -> dict[str, Any]:
    out = {"chat", *_SESSION_IDS} | ({metadata_key} if metadata_key is not None else set())
    kept = {
        name: value
        for name, value in metadata.items()
        if name not in out and not _is_mark_name(name)
    }
    session = kept.get("session")
    if isinstance(session, Mapping):
        kept["session"] = {name: value for name, value in session.items() if name != "id"}
    return kept


def _is_mark(part: Any) -> bool:
    kind = part.get("type") if isinstance(part, Mapping) else None
    return isinstance(kind, str) and _is_mark_name(kind.removeprefix("data-"))


def _is_mark_name(name: str) -> bool:
    words = name.replace("-", "_").lower().strip("_").removeprefix("is")
    return words.strip("_") in _MARKERS or words.strip("_").startswith(("summary_", "compaction_"))
