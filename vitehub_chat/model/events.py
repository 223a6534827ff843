"""Events: what happens in a turn, in order. Drivers emit the first group, the turn the second."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import attrs

from vitehub_chat.model.json_text import Json, JsonObject
from vitehub_chat.model.parts import ABSENT
from vitehub_chat.model.results import ContextBudget


@attrs.frozen
class StepStarted:
    """The model is called, once more."""


@attrs.frozen
class StepFinished:
    """The call of the model and the tools it asked for are done."""


@attrs.frozen
class TextDelta:
    """Text that continues the text part `part_id`, or begins it."""

    part_id: str
    text: str


@attrs.frozen
class ReasoningDelta:
    """Reasoning that continues the reasoning part `part_id`, or begins it."""

    part_id: str
    text: str
    provider: str | None = None
    signature: str | None = None
    item: JsonObject | None = None


@attrs.frozen
class ToolInputDelta:
    """Input of a tool call while the model writes it, as JSON text."""

    call_id: str
    name: str
    text: str


@attrs.frozen
class ToolCall:
    """The model calls a tool; with `error` its input could not be read."""

    call_id: str
    name: str
    input: Json = None
    error: str | None = None


@attrs.frozen
class ToolResult:
    """What a tool call came to."""

    call_id: str
    name: str
    output: Any = ABSENT
    status: Literal["completed", "failed", "denied"] = "completed"
    error: str | None = None


@attrs.frozen
class ApprovalRequested:
    """Somebody has to decide whether a tool call may run."""

    approval_id: str
    call_id: str


@attrs.frozen
class SourceFound:
    """The answer leans on a source: a `url`, or a document with `media_type`."""

    source_id: str
    url: str | None = None
    title: str | None = None
    media_type: str | None = None


@attrs.frozen
class FileProduced:
    """The model made a file, given as a URL (a `data:` URL carries it)."""

    media_type: str
    url: str
    name: str | None = None


@attrs.frozen
class Usage:
    """What the model reported for one answer, in tokens."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None


@attrs.frozen
class NativeMessages:
    """The answer in the runtime's own form, kept with the row for that runtime alone."""

    format: str
    payload: Json


@attrs.frozen
class Done:
    """The driver ended by itself."""

    finish_reason: str | None = None


DriverEvent = (
    StepStarted
    | StepFinished
    | TextDelta
    | ReasoningDelta
    | ToolInputDelta
    | ToolCall
    | ToolResult
    | ApprovalRequested
    | SourceFound
    | FileProduced
    | Usage
    | NativeMessages
    | Done
)
"""What a driver emits."""


@attrs.frozen(kw_only=True)
class RunStarted:
    """The turn begins to answer; `message_id` is the id the answer is stored under."""

    message_id: str
    session_id: str | None = None
    run_id: str | None = None
    thread_id: str | None = None
    created_at: datetime | None = None


@attrs.frozen(kw_only=True)
class BudgetChanged:
    """How much of the model's window is used now."""

    budget: ContextBudget


@attrs.frozen(kw_only=True)
class RunFinished:
    """The turn is over and recorded, or was answered without a run of its own.

    Attributes:
        status: The status of the result.
        finish_reason: Why the driver stopped.
        usage: What the model reported.
    """

    status: str = "complete"
    finish_reason: str | None = None
    usage: Usage | None = None
    budget: ContextBudget | None = None


@attrs.frozen(kw_only=True)
class RunInterrupted:
    """The turn was stopped; what it had is recorded."""

    reason: str


@attrs.frozen(kw_only=True)
class RunFailed:
    """The turn failed; `text` is what may be shown to people, None is nothing."""

    text: str | None
    code: str = "internal"


TurnEvent = RunStarted | BudgetChanged | RunFinished | RunInterrupted | RunFailed
"""What the turn emits."""

AgentEvent = DriverEvent | TurnEvent
"""What `stream_agent_trigger(..., output="events")` yields."""
