"""Content: what of a message or a tool takes room: its texts and media."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from vitehub_chat.model.estimates import DescribedTool
from vitehub_chat.model.json_text import compact_json
from vitehub_chat.model.parts import (
    MediaPart,
    ModelPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    text_of_result,
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
    return (tool.name, tool.description, compact_json(tool.parameters))


def _texts_of(part: ModelPart) -> Iterator[str]:
    if isinstance(part, TextPart):
        yield part.text
    elif isinstance(part, ReasoningPart):
        yield part.text or ""
    elif isinstance(part, ToolCallPart):
        yield part.name
        if part.input is not None:
            yield compact_json(part.input)
    elif isinstance(part, ToolResultPart):
        yield text_of_result(part)
