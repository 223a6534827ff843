"""The wire shape of chat completions: OpenAI and those that follow it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vitehub_chat.formatting.turns import BLANK_LINE, Turn
from vitehub_chat.formatting.wire_media import AUDIO_FORMATS, file_name, location, plain_type
from vitehub_chat.formatting.wire_text import arguments_text
from vitehub_chat.model.parts import (
    MediaPart,
    ModelPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    text_of_result,
)


def write_chat(turns: Sequence[Turn]) -> dict[str, Any]:
    """Return `messages` of normalised turns."""
    return {"messages": [message for turn in turns for message in _write(turn)]}


def _write(turn: Turn) -> list[dict[str, Any]]:
    if turn.role == "tool":
        return [
            {"role": "tool", "tool_call_id": result.id, "content": text_of_result(result)}
            for result in turn.results
        ]
    if turn.role == "assistant":
        return [_answer(turn)]
    name = {} if turn.author is None else {"name": turn.author}
    return [{"role": turn.role, **name, "content": _content(turn)}]


def _answer(turn: Turn) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    reasoning = [part.text for part in turn.parts if isinstance(part, ReasoningPart) and part.text]
    if reasoning:
        fields["reasoning_content"] = BLANK_LINE.join(reasoning)
    if turn.calls:
        fields["tool_calls"] = [_call(call) for call in turn.calls]
    return fields


def _call(call: ToolCallPart) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments_text(call)}
    return {"id": call.id, "type": "function", "function": function}


def _content(turn: Turn) -> str | list[dict[str, Any]]:
    if not turn.has_media:
        return turn.text
    return [item for part in turn.parts for item in _item(part)]


def _item(part: ModelPart) -> list[dict[str, Any]]:
    if isinstance(part, TextPart):
        return [{"type": "text", "text": part.text}]
    return [_media(part)] if isinstance(part, MediaPart) else []


def _media(part: MediaPart) -> dict[str, Any]:
    match part.type:
        case "image":
            return {"type": "image_url", "image_url": {"url": location(part)}}
        case "audio":
            audio = {"data": part.data, "format": AUDIO_FORMATS[plain_type(part)]}
            return {"type": "input_audio", "input_audio": audio}
        case "file":
            file = {"filename": file_name(part), "file_data": location(part)}
            return {"type": "file", "file": file}
