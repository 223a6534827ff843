"""Parts: what the message that a driver gets is made of."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Literal

import attrs

from vitehub_chat.model.json_text import JsonObject, compact_json


class _Absent(Enum):
    ABSENT = "absent"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent.ABSENT
"""Stands for an output that was not given; None is an output."""


@attrs.frozen
class TextPart:
    """Plain text."""

    text: str
    id: str | None = None


@attrs.frozen
class DataPart:
    """Data of the application, of type `data` or `data-<name>`."""

    type: str
    data: Any
    id: str | None = None


@attrs.frozen
class MediaPart:
    """An image, a sound or another file, as base64 `data` or as a `url`."""

    type: Literal["image", "audio", "file"]
    media_type: str
    data: str | None = None
    url: str | None = None
    name: str | None = None


@attrs.frozen
class ToolCallPart:
    """A call of a tool."""

    id: str
    name: str
    input: Any = None


@attrs.frozen
class ToolResultPart:
    """What a tool call came to: `completed` with its output, or `failed` with an error."""

    id: str
    name: str
    output: Any = ABSENT
    status: Literal["completed", "failed"] = "completed"
    error: str | None = None


@attrs.frozen
class ApprovalRequestPart:
    """Somebody is asked whether a tool call may run."""

    id: str
    call_id: str


@attrs.frozen
class ApprovalDecisionPart:
    """The answer to an approval request."""

    id: str
    approved: bool
    reason: str | None = None


@attrs.frozen
class ReasoningPart:
    """Reasoning of a model, given back only to the provider that wrote it."""

    provider: str | None = None
    text: str | None = None
    signature: str | None = None
    item: JsonObject | None = None


ModelPart = (
    TextPart
    | DataPart
    | MediaPart
    | ToolCallPart
    | ToolResultPart
    | ApprovalRequestPart
    | ApprovalDecisionPart
    | ReasoningPart
)
"""A part of a message that a driver gets."""

Part = ModelPart | JsonObject
"""A part of any message: in stored rows and in input it is a JSON object, kept as supplied."""

_KINDS: dict[type, str] = {
    TextPart: "text",
    ToolCallPart: "tool-call",
    ToolResultPart: "tool-result",
    ApprovalRequestPart: "approval-request",
    ApprovalDecisionPart: "approval-decision",
    ReasoningPart: "reasoning",
}


def text_of_result(part: ToolResultPart) -> str:
    """Return the error of a failed result, else its output: a text as it is, else as JSON text."""
    if part.status == "failed" and part.error is not None:
        return part.error
    if part.output is ABSENT:
        return ""
    return part.output if isinstance(part.output, str) else compact_json(part.output)


def part_to_json(part: Part) -> JsonObject:
    """Return a part as a JSON object with camelCase keys; what is absent is left out."""
    if isinstance(part, Mapping):
        return part
    kind = _KINDS.get(type(part))
    fields: dict[str, Any] = {"type": kind} if kind else {}
    for field in attrs.fields(type(part)):
        value = getattr(part, field.name)
        if value is ABSENT or (value is None and field.default is None):
            continue
        name: str = field.name
        fields[_CAMEL.get(name, name)] = value
    return fields


_CAMEL = {"media_type": "mediaType", "call_id": "callId"}
