"""The wire shape of Anthropic's messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vitehub_chat.formatting.turns import Turn, split_system
from vitehub_chat.formatting.wire_media import IMAGE_FORMATS, plain_type, text_of
from vitehub_chat.formatting.wire_text import arguments_of
from vitehub_chat.model.parts import (
    MediaPart,
    ModelPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    text_of_result,
)


def write_anthropic(turns: Sequence[Turn]) -> dict[str, Any]:
    """Return `system`, if there is any, and `messages` of normalised turns."""
    system, rest = split_system(turns)
    fields: dict[str, Any] = {} if system is None else {"system": system}
    fields["messages"] = [
        {"role": turn.role, "content": [block for part in turn.parts for block in _blocks(part)]}
        for turn in rest
    ]
    return fields


def _blocks(part: ModelPart) -> list[dict[str, Any]]:
    if isinstance(part, TextPart):
        return [{"type": "text", "text": part.text}]
    if isinstance(part, MediaPart):
        return [_media(part)]
    if isinstance(part, ToolCallPart):
        call = {"id": part.id, "name": part.name, "input": arguments_of(part)}
        return [{"type": "tool_use", **call}]
    if isinstance(part, ToolResultPart):
        failed = {"is_error": True} if part.status == "failed" else {}
        result = {"tool_use_id": part.id, "content": text_of_result(part), **failed}
        return [{"type": "tool_result", **result}]
    if isinstance(part, ReasoningPart):
        thinking = {"thinking": part.text or "", "signature": part.signature}
        return [{"type": "thinking", **thinking}]
    return []


def _media(part: MediaPart) -> dict[str, Any]:
    kind = "image" if part.type == "image" else "document"
    return {"type": kind, "source": _source(part)}


def _source(part: MediaPart) -> dict[str, Any]:
    if part.data is None:
        return {"type": "url", "url": part.url}
    text = text_of(part)
    if text is not None:
        return {"type": "text", "media_type": "text/plain", "data": text}
    media_type = plain_type(part)
    if part.type == "image":
        media_type = f"image/{IMAGE_FORMATS[media_type]}"
    return {"type": "base64", "media_type": media_type, "data": part.data}
