"""Content: what of a message or a tool takes room: its texts and media."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from vitehub_chat.errors import InputError
from vitehub_chat.model.estimates import DescribedTool
from vitehub_chat.model.json_text import encode_json, jsonable
from vitehub_chat.model.parts import (
    ABSENT,
    MediaPart,
    ModelPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

_MEDIA_TOKENS: Final = {"image": 1000, "audio": 1000, "file": 2000}


@attrs.frozen
class Content:
    """What of a message takes room.

    Attributes:
        texts: Its texts, in order, each counted as it stands.
        media_tokens: What its media cost in tokens, whatever their size.
    """

    texts: tuple[str, ...]
    media_tokens: int


def read_content(parts: Iterable[ModelPart]) -> Content:
    """Return what takes room; data and approvals never reach a model and cost nothing."""
    texts: list[str] = []
    media_tokens = 0
    for part in parts:
        if isinstance(part, MediaPart):
            media_tokens += _MEDIA_TOKENS[part.type]
        else:
            texts.extend(_texts_of(part))
    return Content(tuple(texts), media_tokens)


def texts_of_tool(tool: DescribedTool) -> tuple[str, ...]:
    """Return name, description and schema of a tool."""
    return (tool.name, tool.description, _compact(tool.parameters))


def _texts_of(part: ModelPart) -> Iterator[str]:
    if isinstance(part, TextPart):
        yield part.text
    elif isinstance(part, ReasoningPart):
        yield part.text or ""
    elif isinstance(part, ToolCallPart):
        yield part.name
        if part.input is not None:
            yield _compact(part.input)
    elif isinstance(part, ToolResultPart):
        yield _text_of_result(part)


def _text_of_result(part: ToolResultPart) -> str:
    if part.status == "failed" and part.error is not None:
        return part.error
    if part.output is ABSENT:
        return ""
    return part.output if isinstance(part.output, str) else _compact(part.output)


def _compact(value: object) -> str:
    try:
        return encode_json(value, "value")
    except InputError:
        return encode_json(jsonable(value), "value")
