"""The wire shape of OpenAI's responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from vitehub_chat.formatting.turns import BLANK_LINE, Turn, split_system
from vitehub_chat.formatting.wire_media import file_name, location
from vitehub_chat.formatting.wire_text import arguments_text
from vitehub_chat.model.parts import (
    MediaPart,
    ModelPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    text_of_result,
)


def write_responses(turns: Sequence[Turn]) -> dict[str, Any]:
    """Return `instructions`, if there are any, and `input` of normalised turns."""
    system, rest = split_system(turns)
    fields: dict[str, Any] = {} if system is None else {"instructions": system}
    fields["input"] = [item for turn in rest for item in _items(turn)]
    return fields


def _items(turn: Turn) -> Iterator[dict[str, Any]]:
    """Give the items of a turn in the order of its parts; what is said in a row is one message."""
    role = "developer" if turn.role == "system" else turn.role
    for is_message, group in groupby(turn.parts, lambda part: isinstance(part, _SAID)):
        if is_message:
            yield {"type": "message", "role": role, "content": _content(list(group))}
        else:
            yield from (item for part in group for item in _item(part))


_SAID = (TextPart, MediaPart)


def _content(parts: Sequence[ModelPart]) -> str | list[dict[str, Any]]:
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if len(texts) == len(parts):
        return BLANK_LINE.join(texts)
    return [
        {"type": "input_text", "text": part.text} if isinstance(part, TextPart) else _media(part)
        for part in parts
        if isinstance(part, TextPart | MediaPart)
    ]


def _media(part: MediaPart) -> dict[str, Any]:
    if part.type == "image":
        return {"type": "input_image", "image_url": location(part), "detail": "auto"}
    if part.data is None:
        return {"type": "input_file", "file_url": part.url}
    return {"type": "input_file", "filename": file_name(part), "file_data": location(part)}


def _item(part: ModelPart) -> list[dict[str, Any]]:
    if isinstance(part, ToolCallPart):
        return [
            {
                "type": "function_call",
                "call_id": part.id,
                "name": part.name,
                "arguments": arguments_text(part),
            }
        ]
    if isinstance(part, ToolResultPart):
        output = {"call_id": part.id, "output": text_of_result(part)}
        return [{"type": "function_call_output", **output}]
    if isinstance(part, ReasoningPart) and part.item is not None:
        return [dict(part.item)]
    return []
