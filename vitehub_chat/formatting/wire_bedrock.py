"""The wire shape of Bedrock's Converse."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from vitehub_chat.formatting.turns import Turn, split_system
from vitehub_chat.formatting.wire_media import (
    DOCUMENT_FORMATS,
    IMAGE_FORMATS,
    file_name,
    plain_type,
)
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

_MAX_NAME: Final = 190
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9()\[\]-]+")


def write_bedrock(turns: Sequence[Turn]) -> dict[str, Any]:
    """Return `system`, if there is any, and `messages` of normalised turns.

    Media bytes are base64 text, as in the body of a request; the AWS SDK takes them decoded.
    """
    system, rest = split_system(turns)
    fields: dict[str, Any] = {} if system is None else {"system": [{"text": system}]}
    names: set[str] = set()
    fields["messages"] = [
        {
            "role": turn.role,
            "content": [block for part in turn.parts for block in _blocks(part, names)],
        }
        for turn in rest
    ]
    return fields


def _blocks(part: ModelPart, names: set[str]) -> list[dict[str, Any]]:
    if isinstance(part, TextPart):
        return [{"text": part.text}]
    if isinstance(part, MediaPart):
        return [_media(part, names)]
    if isinstance(part, ToolCallPart):
        call = {"toolUseId": part.id, "name": part.name, "input": arguments_of(part)}
        return [{"toolUse": call}]
    if isinstance(part, ToolResultPart):
        return [{"toolResult": _result(part)}]
    if isinstance(part, ReasoningPart):
        reasoning = {"text": part.text or "", "signature": part.signature}
        return [{"reasoningContent": {"reasoningText": reasoning}}]
    return []


def _result(result: ToolResultPart) -> dict[str, Any]:
    """Write a result; Converse takes objects as JSON, anything else only as text."""
    if result.status == "failed":
        content: dict[str, Any] = {"text": text_of_result(result)}
        return {"toolUseId": result.id, "content": [content], "status": "error"}
    if isinstance(result.output, Mapping):
        content = {"json": dict(result.output)}
    else:
        content = {"text": text_of_result(result)}
    return {"toolUseId": result.id, "content": [content]}


def _media(part: MediaPart, names: set[str]) -> dict[str, Any]:
    if part.type == "image":
        return {"image": {"format": IMAGE_FORMATS[plain_type(part)], "source": _source(part)}}
    document = {"format": DOCUMENT_FORMATS[plain_type(part)], "name": _name(part, names)}
    return {"document": {**document, "source": _source(part)}}


def _source(part: MediaPart) -> dict[str, Any]:
    if part.data is not None:
        return {"bytes": part.data}
    return {"s3Location": {"uri": part.url}}


def _name(part: MediaPart, names: set[str]) -> str:
    """Return a name of the characters that Converse takes, once in the request."""
    plain = _NOT_IN_NAMES.sub(" ", file_name(part)).strip()[:_MAX_NAME].strip() or "file"
    name, number = plain, 1
    while name in names:
        number += 1
        name = f"{plain} ({number})"
    names.add(name)
    return name
