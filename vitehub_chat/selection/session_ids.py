"""Session ids that messages carry in their metadata."""

from __future__ import annotations

from collections.abc import Mapping

from vitehub_chat.model.json_text import JsonObject
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.model.requests import SessionChoice

_MAX_BITS = 3 * 512
_FLAT = ("sessionId", "session_id", "chatSessionId", "chat_session_id")
_NESTED = (("chat", "sessionId"), ("chat", "session_id"), ("session", "id"))


def usable_id(value: object) -> str | None:
    """Return a value as a session id: non-empty text as it is, an int (no bool) in decimal.

    An int with too many digits to be an id is none.
    """
    if isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if value.bit_length() <= _MAX_BITS else None
    return None


def own_id(metadata: JsonObject, metadata_key: str | None) -> str | None:
    """Return the first usable session id of a message's metadata, or None.

    Looked for at `metadata_key`, then at the places that chat clients use.
    """
    if not metadata:
        return None
    if metadata_key is not None and (found := usable_id(metadata.get(metadata_key))) is not None:
        return found
    for key in _FLAT:
        if (found := usable_id(metadata.get(key))) is not None:
            return found
    for outer, inner in _NESTED:
        nested = metadata.get(outer)
        if isinstance(nested, Mapping) and (found := usable_id(nested.get(inner))) is not None:
            return found
    return None


def wanted_id(choice: SessionChoice, current: Message, policy: SessionPolicy | None) -> str | None:
    """Return the session that a call asks for, or None.

    What the call says wins; without it `manual` and `hybrid` go by the current message's own id.
    """
    if choice.id is not None or policy is None or policy.strategy == "idle-timeout":
        return choice.id
    return own_id(current.metadata, policy.metadata_key)
