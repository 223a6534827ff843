"""Short words for messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitehub_chat.model.messages import Message

Json = dict[str, Any]


def message(role: str, *parts: str | Mapping[str, Any], author: str | None = None) -> Message:
    return Message(
        None,
        role,
        tuple(text(part) if isinstance(part, str) else part for part in parts),
        {} if author is None else {"author": author},
    )


def user(*parts: str | Mapping[str, Any], author: str | None = None) -> Message:
    return message("user", *parts, author=author)


def assistant(*parts: str | Mapping[str, Any]) -> Message:
    return message("assistant", *parts)


def system(*parts: str | Mapping[str, Any]) -> Message:
    return message("system", *parts)


def tool(*parts: str | Mapping[str, Any]) -> Message:
    return message("tool", *parts)


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def call(call_id: str, name: str = "get", given: Any = None, **more: Any) -> Json:
    return {"type": "tool-call", "id": call_id, "name": name, "input": given, **more}


def result(call_id: str, output: Any = "ok", name: str = "get") -> Json:
    return {"type": "tool-result", "id": call_id, "name": name, "output": output}


def failed(call_id: str, error: str | None, **more: Any) -> Json:
    fields = {"type": "tool-result", "id": call_id, "name": "get", "status": "failed", **more}
    return fields if error is None else {**fields, "error": error}


def media(kind: str, media_type: str, **more: Any) -> Json:
    return {"type": kind, "mediaType": media_type, **more}


def reasoning(provider: str, **more: Any) -> Json:
    return {"type": "reasoning", "provider": provider, **more}
