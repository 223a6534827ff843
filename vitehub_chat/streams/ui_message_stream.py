"""The AI SDK UI message stream, version 1: events of a run as chunks that its clients read.

https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol

The client throws away the rest of a stream at the first chunk that it does not expect, so a delta
never comes without its start, and what is open is closed before the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

import attrs

from vitehub_chat.model.events import (
    ApprovalRequested,
    BudgetChanged,
    FileProduced,
    ReasoningDelta,
    RunFailed,
    RunFinished,
    RunInterrupted,
    RunStarted,
    SourceFound,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolCall,
    ToolInputDelta,
    ToolResult,
)
from vitehub_chat.model.json_text import Json, decode_json, encode_json
from vitehub_chat.model.messages import format_time
from vitehub_chat.model.parts import ABSENT
from vitehub_chat.streams.chunks import Chunk, ChunkEncoder, facts_of, join_halves, present
from vitehub_chat.streams.sse import (
    DONE_FRAME,
    KEEP_ALIVE_FRAME,
    OPEN_FRAME,
    SSE_HEADERS,
    sse_frame,
)

__all__ = [
    "DONE_FRAME",
    "HEADERS",
    "KEEP_ALIVE_FRAME",
    "OPEN_FRAME",
    "Chunk",
    "UIMessageStreamEncoder",
    "sse_frame",
]

HEADERS: Mapping[str, str] = {**SSE_HEADERS, "x-vercel-ai-ui-message-stream": "v1"}
"""Headers of a response that carries this stream."""

INTERRUPTED: Final = "interrupted"
"""The error text of a tool call that the end of the run left open, as in its stored row."""

_FINISH_REASONS: Mapping[str, str] = {
    "stop": "stop",
    "end-turn": "stop",
    "stop-sequence": "stop",
    "length": "length",
    "max-tokens": "length",
    "content-filter": "content-filter",
    "tool-call": "tool-calls",
    "tool-calls": "tool-calls",
    "tool-use": "tool-calls",
    "error": "error",
}


@attrs.define
class _Call:
    """A tool call of this stream; `held` is the first half of a pair whose second has to come."""

    name: str
    state: Literal["streaming", "called", "asked", "ended"]
    held: str = ""


class UIMessageStreamEncoder(ChunkEncoder):
    """Turns the events of one run into chunks; one encoder serves one stream.

    Attributes:
        headers: Headers of a response that carries the stream.
    """

    form = "ui-message-stream"
    headers = HEADERS
    end_frames = (DONE_FRAME,)

    def __init__(self, *, continued: bool = False) -> None:
        """Create the encoder of one stream.

        Args:
            continued: The run goes on with an answer that the client already has, so results may
                belong to tool calls of it. Else a result without its call brings the call along.
        """
        super().__init__()
        self._continued = continued
        self._is_started = False
        self._in_step = False
        self._is_fresh = False
        self._parts: dict[tuple[str, str], str] = {}
        self._calls: dict[str, _Call] = {}

    def _run_started(self, event: RunStarted) -> Iterator[Chunk]:
        if self._is_started:  # a second start would rename the message
            return
        self._is_started = True
        created_at = None if event.created_at is None else format_time(event.created_at)
        facts = present(sessionId=event.session_id, runId=event.run_id, createdAt=created_at)
        yield {"type": "start", "messageId": event.message_id, **_metadata(facts)}
        if self._continued:
            # Clients send an answer again and again whose last step has nothing but settled calls.
            self._in_step = self._is_fresh = True
            yield {"type": "start-step"}

    def _step_started(self, _event: StepStarted) -> Iterator[Chunk]:
        if self._is_fresh:
            self._is_fresh = False
            return
        yield from self._end_step()
        self._in_step = True
        yield {"type": "start-step"}

    def _step_finished(self, _event: StepFinished) -> Iterator[Chunk]:
        yield from self._end_step()

    def _text(self, event: TextDelta | ReasoningDelta) -> Iterator[Chunk]:
        if not event.text:
            return
        self._is_fresh = False
        kind = "text" if isinstance(event, TextDelta) else "reasoning"
        key = (kind, event.part_id)
        if key not in self._parts:
            yield {"type": f"{kind}-start", "id": event.part_id}
        delta, self._parts[key] = join_halves(self._parts.get(key, ""), event.text)
        if delta:
            yield {"type": f"{kind}-delta", "id": event.part_id, "delta": delta}

    def _tool_input(self, event: ToolInputDelta) -> Iterator[Chunk]:
        self._is_fresh = False
        call = self._calls.get(event.call_id)
        if call is None:
            call = self._calls[event.call_id] = _Call(event.name, "streaming")
            yield _tool_chunk("tool-input-start", event.call_id, toolName=event.name)
        if call.state != "streaming":  # the whole input is there; more would reopen the call
            return
        delta, call.held = join_halves(call.held, event.text)
        if delta:
            yield {
                "type": "tool-input-delta",
                "toolCallId": event.call_id,
                "inputTextDelta": delta,
            }

    def _tool_call(self, event: ToolCall) -> Iterator[Chunk]:
        self._is_fresh = False
        facts = {"toolName": event.name, "input": _json(event.input, "input")}
        if event.error is None:
            self._calls[event.call_id] = _Call(event.name, "called")
            yield _tool_chunk("tool-input-available", event.call_id, **facts)
        else:
            self._calls[event.call_id] = _Call(event.name, "ended")
            yield _tool_chunk("tool-input-error", event.call_id, **facts, errorText=event.error)

    def _tool_result(self, event: ToolResult) -> Iterator[Chunk]:
        yield from self._bring_call(event.call_id, event.name)
        self._calls[event.call_id] = _Call(event.name, "ended")
        if event.status == "denied":
            yield {"type": "tool-output-denied", "toolCallId": event.call_id}
        elif event.status == "failed":
            yield _tool_chunk("tool-output-error", event.call_id, errorText=event.error or "")
        else:
            output = None if event.output is ABSENT else _json(event.output, "output")
            yield _tool_chunk("tool-output-available", event.call_id, output=output)

    def _approval(self, event: ApprovalRequested) -> Iterator[Chunk]:
        yield from self._bring_call(event.call_id, "unknown")
        if event.call_id in self._calls:
            self._calls[event.call_id].state = "asked"
        yield {
            "type": "tool-approval-request",
            "approvalId": event.approval_id,
            "toolCallId": event.call_id,
        }

    def _source(self, event: SourceFound) -> Iterator[Chunk]:
        self._is_fresh = False
        if event.url is not None:
            title = present(title=event.title)
            yield {"type": "source-url", "sourceId": event.source_id, "url": event.url, **title}
        else:
            yield {
                "type": "source-document",
                "sourceId": event.source_id,
                "mediaType": event.media_type or "application/octet-stream",
                "title": event.title or event.source_id,
            }

    def _file(self, event: FileProduced) -> Iterator[Chunk]:
        self._is_fresh = False
        yield {"type": "file", "url": event.url, "mediaType": event.media_type}

    def _budget(self, event: BudgetChanged) -> Iterator[Chunk]:
        yield {
            "type": "data-context-budget",
            "id": "context-budget",
            "data": facts_of(event.budget),
            "transient": True,
        }

    def _run_finished(self, event: RunFinished) -> Iterator[Chunk]:
        if not self._is_started:
            self._is_started = True
            yield {"type": "start", **_metadata({"status": event.status})}
        yield from self._close_parts()
        for call_id, call in self._calls.items():
            if call.state == "streaming":
                yield _unread_input(call_id, call)
        yield from self._end_step()
        self._is_ended = True
        facts = present(
            status=event.status,
            coalesced=True if event.status == "coalesced" else None,
            contextBudget=facts_of(event.budget),
            usage=facts_of(event.usage),
        )
        reason = present(finishReason=_finish_reason(event.finish_reason))
        yield {"type": "finish", **reason, **_metadata(facts)}

    def _run_interrupted(self, event: RunInterrupted) -> Iterator[Chunk]:
        yield from self._break_off("interrupted")
        yield {"type": "abort", "reason": event.reason}

    def _run_failed(self, event: RunFailed) -> Iterator[Chunk]:
        yield from self._break_off("error")
        yield {"type": "error", "errorText": event.text or ""}

    def _break_off(self, status: str) -> Iterator[Chunk]:
        """Close everything and tell the status, which the chunk that ends the run does not."""
        yield from self._close_parts()
        for call_id, call in self._calls.items():
            if call.state == "streaming":
                yield _unread_input(call_id, call)
            elif call.state == "called":
                yield _tool_chunk("tool-output-error", call_id, errorText=INTERRUPTED)
        self._is_ended = True
        yield {"type": "message-metadata", **_metadata({"status": status})}

    def _end_step(self) -> Iterator[Chunk]:
        yield from self._close_parts()
        if self._in_step:
            self._in_step = False
            yield {"type": "finish-step"}

    def _close_parts(self) -> Iterator[Chunk]:
        for (kind, part_id), held in self._parts.items():
            if held:
                yield {"type": f"{kind}-delta", "id": part_id, "delta": held}
            yield {"type": f"{kind}-end", "id": part_id}
        self._parts.clear()

    def _bring_call(self, call_id: str, name: str) -> Iterator[Chunk]:
        """Send a call that nobody announced, unless the client has it from before."""
        if call_id not in self._calls and not self._continued:
            self._calls[call_id] = _Call(name, "called")
            yield _tool_chunk("tool-input-available", call_id, toolName=name, input={})

    _encoders: ClassVar[Mapping[type, Callable[[Any, Any], Iterator[Chunk]]]] = {
        RunStarted: _run_started,
        StepStarted: _step_started,
        StepFinished: _step_finished,
        TextDelta: _text,
        ReasoningDelta: _text,
        ToolInputDelta: _tool_input,
        ToolCall: _tool_call,
        ToolResult: _tool_result,
        ApprovalRequested: _approval,
        SourceFound: _source,
        FileProduced: _file,
        BudgetChanged: _budget,
        RunFinished: _run_finished,
        RunInterrupted: _run_interrupted,
        RunFailed: _run_failed,
    }


def _tool_chunk(kind: str, call_id: str, **facts: Json) -> Chunk:
    """Return a chunk about a tool; a static one would promise a schema that nobody here knows."""
    return {"type": kind, "toolCallId": call_id, **facts, "dynamic": True}


def _unread_input(call_id: str, call: _Call) -> Chunk:
    return _tool_chunk(
        "tool-input-error", call_id, toolName=call.name, input=None, errorText=INTERRUPTED
    )


def _json(value: object, path: str) -> Json:
    """Return a value of a tool as plain JSON values, lone surrogates replaced at any depth."""
    return decode_json(encode_json(value, path))


def _metadata(facts: Chunk) -> Chunk:
    return {"messageMetadata": facts} if facts else {}


def _finish_reason(reason: str | None) -> str | None:
    """Return a reason that clients know; null would break them, so None leaves it out."""
    if reason is None:
        return None
    return _FINISH_REASONS.get(reason.lower().replace("_", "-"), "other")
