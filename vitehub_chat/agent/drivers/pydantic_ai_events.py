"""Events of Pydantic AI: what a run streams, as driver events.

Imports the extra `models`; the driver `pydantic_ai` is its only user.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

import attrs
from pydantic_ai import AgentRunResultEvent, DeferredToolRequests
from pydantic_ai.messages import (
    BaseToolCallPart,
    BaseToolReturnPart,
    Citation,
    FilePart,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    WebCitationSource,
    tool_return_ta,
)

from vitehub_chat.model.events import (
    ApprovalRequested,
    Done,
    DriverEvent,
    FileProduced,
    ReasoningDelta,
    SourceFound,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolCall,
    ToolInputDelta,
    ToolResult,
    Usage,
)
from vitehub_chat.model.json_text import Json, jsonable

FINISH_REASONS = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content-filter",
    "tool_call": "tool-calls",
    "error": "error",
}


def to_json(value: object) -> Json:
    """Return a value as JSON; what is none becomes its text."""
    try:
        return json.loads(tool_return_ta.dump_json(value, by_alias=True, fallback=str))
    except ValueError:
        return jsonable(value)


@attrs.define(kw_only=True)
class Progress:
    """What a run knows beside its events; the hooks of the run write it.

    Attributes:
        responses: What the model answered whose usage was not told yet, in order.
        output_tools: Tools by which the model gives its answer; no events tell of them.
        finish_reason: Why the model stopped the last time, in its own word.
    """

    responses: list[ModelResponse] = attrs.field(factory=list)
    output_tools: Collection[str] = ()
    finish_reason: str | None = None


class Translation:
    """Turns the events of one run into driver events, in order.

    A step is one request of the model with the tools that it asked for. Its usage is told when it
    ends, so the last one told is the size of the whole context.

    Args:
        progress: What the hooks of the run know.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._in_step = False
        self._in_response = False
        self._count = 0
        self._open: dict[int, _Stream] = {}

    def read(self, event: object) -> Iterator[DriverEvent]:
        """Return what one event of the run means; one that means nothing gives nothing."""
        if isinstance(event, PartStartEvent):
            yield from self._begin_response()
            yield from self._start(event)
        elif isinstance(event, PartDeltaEvent):
            yield from self._delta(self._open[event.index], event.delta)
        elif isinstance(event, PartEndEvent):
            self._in_response = event.next_part_kind is not None
            yield from _whole(event.part)
        elif isinstance(event, FunctionToolCallEvent):
            yield from self._begin_step()
            yield tool_call(event.part)
        elif isinstance(event, FunctionToolResultEvent):
            yield tool_result(event.part)
        elif isinstance(event, AgentRunResultEvent):
            yield from self._end(event.result.output, event.result.new_messages())

    def done(self, output: object) -> Done:
        """Return the end of the run that came to an output."""
        if isinstance(output, DeferredToolRequests):
            return Done("tool-calls")
        reason = self._progress.finish_reason
        return Done("stop" if reason is None else FINISH_REASONS.get(reason, "other"))

    def _begin_response(self) -> Iterator[DriverEvent]:
        if not self._in_response:
            yield from self._finish_step()
            yield from self._begin_step()
        self._in_response = True

    def _begin_step(self) -> Iterator[DriverEvent]:
        if not self._in_step:
            self._in_step = True
            yield StepStarted()

    def _finish_step(self) -> Iterator[DriverEvent]:
        responses, self._progress.responses = self._progress.responses, []
        yield from (_usage(response) for response in responses)
        if self._in_step:
            self._in_step = False
            yield StepFinished()

    def _start(self, event: PartStartEvent) -> Iterator[DriverEvent]:
        self._count += 1
        part = event.part
        stream = self._open[event.index] = _Stream(id=f"part-{self._count}")
        if isinstance(part, TextPart):
            yield from _text(stream, part.content)
        elif isinstance(part, ThinkingPart):
            stream.name = part.provider_name
            yield from _thinking(stream, part.content, part.signature)
        elif isinstance(part, ToolCallPart):
            stream.call_id, stream.name = part.tool_call_id, part.tool_name
            yield from self._input(stream, part.args)

    def _delta(self, stream: _Stream, delta: object) -> Iterator[DriverEvent]:
        if isinstance(delta, TextPartDelta):
            yield from _text(stream, delta.content_delta)
            yield from _sources(delta.citations_delta or ())
        elif isinstance(delta, ThinkingPartDelta):
            stream.name = delta.provider_name or stream.name
            yield from _thinking(stream, delta.content_delta, delta.signature_delta)
        elif isinstance(delta, ToolCallPartDelta) and stream.call_id is not None:
            stream.name = f"{stream.name}{delta.tool_name_delta or ''}"
            yield from self._input(stream, delta.args_delta)

    def _input(self, stream: _Stream, args: object) -> Iterator[DriverEvent]:
        told = stream.name not in self._progress.output_tools
        if told and stream.call_id and stream.name and args and isinstance(args, str):
            yield ToolInputDelta(stream.call_id, stream.name, args)

    def _end(self, output: object, messages: Sequence[ModelMessage]) -> Iterator[DriverEvent]:
        if isinstance(output, DeferredToolRequests):
            for call in output.approvals:
                yield ApprovalRequested(f"approval-{call.tool_call_id}", call.tool_call_id)
        elif messages and isinstance(messages[-1], ModelRequest):
            # The answer was given by a tool, so no text of it was streamed.
            value = to_json(output)
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield TextDelta("output", text)
        yield from self._finish_step()


@attrs.define(kw_only=True)
class _Stream:
    """A part that is being streamed: `name` is its tool, or the provider of its reasoning."""

    id: str
    call_id: str | None = None
    name: str | None = None


def tool_call(part: BaseToolCallPart[Any]) -> ToolCall:
    """Return the event of a tool call; with `error` when its input is no JSON object."""
    try:
        given = part.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):
        return ToolCall(
            part.tool_call_id, part.tool_name, part.args, "the input is not a JSON object"
        )
    return ToolCall(part.tool_call_id, part.tool_name, to_json(given))


def tool_result(part: BaseToolReturnPart[Any]) -> ToolResult:
    """Return the event of a tool result; what the model has to repeat has failed."""
    if part.outcome == "success":
        return ToolResult(part.tool_call_id, part.tool_name, to_json(part.content))
    status: Literal["denied", "failed"] = "denied" if part.outcome == "denied" else "failed"
    error = part.model_response_str(wrap_if_error=False) or part.outcome
    return ToolResult(part.tool_call_id, part.tool_name, status=status, error=error)


def _whole(part: object) -> Iterator[DriverEvent]:
    """Return the events of parts that are told when they are complete."""
    if isinstance(part, NativeToolCallPart):
        yield tool_call(part)
    elif isinstance(part, NativeToolReturnPart):
        yield tool_result(part)
    elif isinstance(part, FilePart):
        yield FileProduced(part.content.media_type, part.content.data_uri)
    elif isinstance(part, TextPart):
        yield from _sources(part.citations or ())


def _text(stream: _Stream, text: str) -> Iterator[DriverEvent]:
    if text:
        yield TextDelta(stream.id, text)


def _thinking(stream: _Stream, text: str | None, signature: str | None) -> Iterator[DriverEvent]:
    if text or signature:
        yield ReasoningDelta(stream.id, text or "", stream.name, signature)


def _sources(citations: Sequence[Citation]) -> Iterator[DriverEvent]:
    for citation in citations:
        for source in citation.sources:
            if isinstance(source, WebCitationSource):
                yield SourceFound(source.url, source.url, source.title)


def _usage(response: ModelResponse) -> Usage:
    told = response.usage.has_values()
    return Usage(
        response.usage.input_tokens if told else None,
        response.usage.output_tokens if told else None,
        response.model_id or response.model_name,
    )
