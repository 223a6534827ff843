"""The wire shape of Gemini's contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vitehub_chat.formatting.turns import Turn, split_system
from vitehub_chat.formatting.wire_text import arguments_of
from vitehub_chat.model.parts import (
    MediaPart,
    ModelPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def write_gemini(turns: Sequence[Turn]) -> dict[str, Any]:
    """Return `systemInstruction`, if there is any, and `contents` of normalised turns."""
    system, rest = split_system(turns)
    fields: dict[str, Any] = {}
    if system is not None:
        fields["systemInstruction"] = {"parts": [{"text": system}]}
    fields["contents"] = [
        {"role": "model" if turn.role == "assistant" else "user", "parts": _parts(turn)}
        for turn in rest
    ]
    return fields


def _parts(turn: Turn) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    signature: dict[str, Any] = {}
    for part in turn.parts:
        if isinstance(part, ReasoningPart):
            signature = {"thoughtSignature": part.signature}
            continue
        written.extend({**fields, **signature} for fields in _part(part))
        signature = {}
    return written


def _part(part: ModelPart) -> list[dict[str, Any]]:
    if isinstance(part, TextPart):
        return [{"text": part.text}]
    if isinstance(part, MediaPart):
        return [_media(part)]
    if isinstance(part, ToolCallPart):
        return [{"functionCall": {"name": part.name, "args": arguments_of(part)}}]
    if isinstance(part, ToolResultPart):
        return [{"functionResponse": {"name": part.name, "response": _response(part)}}]
    return []


def _response(result: ToolResultPart) -> dict[str, Any]:
    if result.status == "failed":
        return {"error": result.error}
    if isinstance(result.output, Mapping):
        return dict(result.output)
    return {"result": result.output}


def _media(part: MediaPart) -> dict[str, Any]:
    if part.data is not None:
        return {"inlineData": {"mimeType": part.media_type, "data": part.data}}
    return {"fileData": {"mimeType": part.media_type, "fileUri": part.url}}
