"""AG-UI messages: from the form of that protocol to UI messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vitehub_chat.errors import InputError


def read_ag_ui_messages(given: Sequence[object]) -> list[dict[str, Any]]:
    """Return the messages of users and assistants as UI messages, in order.

    Messages of other roles, and the tool calls of assistants, are left out.

    Raises:
        InputError: One of them is no message.
    """
    found: list[dict[str, Any]] = []
    for index, message in enumerate(given):
        path = f"messages[{index}]"
        if not isinstance(message, Mapping):
            raise InputError("a message is a mapping", path=path)
        role = message.get("role")
        if role in {"user", "assistant"}:
            parts = _read_content(message.get("content"), f"{path}.content")
            found.append({"id": message.get("id"), "role": role, "parts": parts})
        elif index == len(given) - 1:
            raise InputError(
                "needs to end with a message of the user", path="messages", code="no_user_message"
            )
    return found


def _read_content(content: object, path: str) -> list[dict[str, Any]]:
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise InputError("must be text or a list", path=path)
    parts = [_read_part(part, f"{path}[{index}]") for index, part in enumerate(content)]
    return [part for part in parts if part is not None]


def _read_part(part: object, path: str) -> dict[str, Any] | None:
    """Return a part, or None for a file that only the model's provider could read."""
    if not isinstance(part, Mapping):
        raise InputError("a part is a mapping", path=path)
    if part.get("type") == "text":
        return {"type": "text", "text": part.get("text")}
    source = part.get("source")
    value = source.get("value") if isinstance(source, Mapping) else None
    if not isinstance(source, Mapping) or not isinstance(value, str):
        raise InputError("needs a source with a value", path=path)
    given = source.get("mimeType")
    kind = given if isinstance(given, str) else "application/octet-stream"
    if source.get("type") == "url":
        return {"type": "file", "mediaType": kind, "url": value}
    if source.get("type") == "data":
        return {"type": "file", "mediaType": kind, "url": f"data:{kind};base64,{value}"}
    return None
