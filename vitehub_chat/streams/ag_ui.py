"""AG-UI 1.0: events of a run as events that its clients read.

https://docs.ag-ui.com/concepts/events

`RUN_STARTED` comes first, `RUN_FINISHED` or `RUN_ERROR` last, and whatever was opened is closed
before that. An answer that speaks, calls tools and speaks again is several messages there: the
first has the id under which the answer is stored, each later one that id with a number behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

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
    Usage,
)
from vitehub_chat.model.json_text import Json, encode_json
from vitehub_chat.model.parts import ABSENT
from vitehub_chat.streams.chunks import Chunk, ChunkEncoder, facts_of, join_halves, present

PROTOCOL_VERSION: Final = "1.0"
INTERRUPTED: Final = "interrupted"
"""The content of the result of a tool call that the end of the run left open."""
DECISION: Final = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
"""What answers the question whether a call may run."""


class AgUiEncoder(ChunkEncoder):
    """Turns the events of one run into AG-UI events; one encoder serves one stream.

    Attributes:
        form: The form of the chunks, as `output` names it.
    """

    form = "ag-ui"

    def __init__(
        self,
        *,
        thread_id: str | None = None,
        run_id: str | None = None,
        continued: bool = False,
    ) -> None:
        """Create the encoder of one stream.

        Args:
            thread_id: The client's name of the conversation, None takes that of the run.
            run_id: The client's name of the run, None takes that of the run.
            continued: The run goes on with an answer that the client already has; what it adds
                are further messages there, as none is opened twice.
        """
        super().__init__()
        self._thread_id = thread_id
        self._run_id = run_id
        self._continued = continued
        self._message_id = ""
        self._messages = 0
        self._has_results = False
        self._is_started = False
        self._steps = 0
        self._in_step = False
        self._open: tuple[str, str] | None = None
        self._reasonings: dict[str, int] = {}
        self._held = ""
        self._arguments: dict[str, str] = {}
        self._called: dict[str, bool] = {}
        self._interrupts: list[Chunk] = []

    def _run_started(self, event: RunStarted) -> Iterator[Chunk]:
        self._message_id = self._message_id or event.message_id
        self._thread_id = self._thread_id or event.thread_id or event.session_id
        self._run_id = self._run_id or event.run_id or event.message_id
        if self._continued and not self._is_started:
            self._message_id = f"{self._message_id}:{self._run_id}"
        yield from self._start()

    def _start(self) -> Iterator[Chunk]:
        if not self._is_started:
            self._is_started = True
            yield {"type": "RUN_STARTED", **self._run(), "protocolVersion": PROTOCOL_VERSION}

    def _run(self) -> Chunk:
        return {"threadId": self._thread_id or "", "runId": self._run_id or ""}

    def _step_started(self, _event: StepStarted) -> Iterator[Chunk]:
        yield from self._end_step()
        self._in_step = True
        self._steps += 1
        yield {"type": "STEP_STARTED", "stepName": self._step_name}

    def _step_finished(self, _event: StepFinished) -> Iterator[Chunk]:
        yield from self._end_step()

    @property
    def _step_name(self) -> str:
        return f"step-{self._steps}"

    def _end_step(self) -> Iterator[Chunk]:
        yield from self._close()
        if self._in_step:
            self._in_step = False
            yield {"type": "STEP_FINISHED", "stepName": self._step_name}

    def _text(self, event: TextDelta) -> Iterator[Chunk]:
        if not event.text:
            return
        if self._open != ("text", event.part_id):
            yield from self._close()
            # A message is opened once; text after a result of it, or a second part, is the next.
            self._next_message()
            self._open = ("text", event.part_id)
            yield {"type": "TEXT_MESSAGE_START", "messageId": self._current, "role": "assistant"}
        yield from self._delta("TEXT_MESSAGE_CONTENT", self._current, event.text)

    def _next_message(self) -> None:
        self._messages += 1
        self._has_results = False

    @property
    def _current(self) -> str:
        """The id of the message that is being made."""
        number = max(self._messages, 1)
        return self._message_id if number == 1 else f"{self._message_id}:{number}"

    def _reasoning(self, event: ReasoningDelta) -> Iterator[Chunk]:
        if not event.text:
            return
        if self._open != ("reasoning", event.part_id):
            yield from self._close()
            self._open = ("reasoning", event.part_id)
            self._reasonings[event.part_id] = self._reasonings.get(event.part_id, 0) + 1
            message_id = self._reasoning_id(event.part_id)
            yield {"type": "REASONING_START", "messageId": message_id}
            yield {
                "type": "REASONING_MESSAGE_START",
                "messageId": message_id,
                "role": "reasoning",
            }
        message_id = self._reasoning_id(event.part_id)
        yield from self._delta("REASONING_MESSAGE_CONTENT", message_id, event.text)

    def _reasoning_id(self, part_id: str) -> str:
        """Return the id of the reasoning that is open; a part that goes on later is another one."""
        number = self._reasonings[part_id]
        message_id = f"{self._message_id}:{part_id}"
        return message_id if number == 1 else f"{message_id}:{number}"

    def _delta(self, kind: str, message_id: str, text: str) -> Iterator[Chunk]:
        delta, self._held = join_halves(self._held, text)
        if delta:
            yield {"type": kind, "messageId": message_id, "delta": delta}

    def _close(self) -> Iterator[Chunk]:
        """End the text or the reasoning that is open."""
        if self._open is None:
            return
        kind, part_id = self._open
        held, self._open, self._held = self._held, None, ""
        if kind == "text":
            if held:
                yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": self._current, "delta": held}
            yield {"type": "TEXT_MESSAGE_END", "messageId": self._current}
            return
        message_id = self._reasoning_id(part_id)
        if held:
            yield {"type": "REASONING_MESSAGE_CONTENT", "messageId": message_id, "delta": held}
        yield {"type": "REASONING_MESSAGE_END", "messageId": message_id}
        yield {"type": "REASONING_END", "messageId": message_id}

    def _tool_input(self, event: ToolInputDelta) -> Iterator[Chunk]:
        if event.call_id in self._called:
            return
        yield from self._open_call(event.call_id, event.name)
        delta, self._arguments[event.call_id] = join_halves(
            self._arguments[event.call_id], event.text
        )
        if delta:
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": event.call_id, "delta": delta}

    def _open_call(self, call_id: str, name: str) -> Iterator[Chunk]:
        if call_id in self._arguments:
            return
        yield from self._close()
        if self._has_results or not self._messages:
            self._next_message()
        self._arguments[call_id] = ""
        yield {
            "type": "TOOL_CALL_START",
            "toolCallId": call_id,
            "toolCallName": name,
            "parentMessageId": self._current,
        }

    def _tool_call(self, event: ToolCall) -> Iterator[Chunk]:
        if event.call_id in self._called:
            return
        is_streamed = event.call_id in self._arguments
        yield from self._open_call(event.call_id, event.name)
        if not is_streamed:
            arguments = encode_json(event.input, "input")
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": event.call_id, "delta": arguments}
        yield from self._end_call(event.call_id)
        if event.error is not None:
            yield self._result(event.call_id, event.error)

    def _end_call(self, call_id: str) -> Iterator[Chunk]:
        held = self._arguments[call_id]
        if held:
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": held}
        self._arguments[call_id] = ""
        self._called[call_id] = False
        yield {"type": "TOOL_CALL_END", "toolCallId": call_id}

    def _tool_result(self, event: ToolResult) -> Iterator[Chunk]:
        yield from self._close()
        if event.call_id in self._arguments and event.call_id not in self._called:
            yield from self._end_call(event.call_id)
        yield self._result(event.call_id, _content_of(event))

    def _result(self, call_id: str, content: str) -> Chunk:
        self._called[call_id] = True
        self._has_results = True
        return {
            "type": "TOOL_CALL_RESULT",
            "messageId": f"{call_id}:result",
            "toolCallId": call_id,
            "content": content,
            "role": "tool",
        }

    def _end_calls(self) -> Iterator[Chunk]:
        """End the calls whose input did not come to its end."""
        for call_id in [each for each in self._arguments if each not in self._called]:
            yield from self._end_call(call_id)

    def _approval(self, event: ApprovalRequested) -> Iterator[Chunk]:
        yield from self._close()
        if event.call_id in self._arguments and event.call_id not in self._called:
            yield from self._end_call(event.call_id)
        self._called[event.call_id] = True
        self._interrupts.append(
            {
                "id": event.approval_id,
                "reason": "tool_approval",
                "toolCallId": event.call_id,
                "responseSchema": DECISION,
            }
        )

    def _source(self, event: SourceFound) -> Iterator[Chunk]:
        yield {"type": "CUSTOM", "name": "source", "value": facts_of(event)}

    def _file(self, event: FileProduced) -> Iterator[Chunk]:
        yield {"type": "CUSTOM", "name": "file", "value": facts_of(event)}

    def _budget(self, event: BudgetChanged) -> Iterator[Chunk]:
        yield {"type": "CUSTOM", "name": "context_budget", "value": facts_of(event.budget)}

    def _run_finished(self, event: RunFinished) -> Iterator[Chunk]:
        yield from self._start()
        yield from self._close()
        yield from self._end_calls()
        yield from self._end_step()
        outcome: Chunk = {"type": "success"}
        if self._interrupts:
            outcome = {"type": "interrupt", "interrupts": self._interrupts}
        yield {
            "type": "RUN_FINISHED",
            **self._run(),
            "outcome": outcome,
            **present(usage=_usage_of(event.usage)),
        }
        self._is_ended = True

    def _run_interrupted(self, _event: RunInterrupted) -> Iterator[Chunk]:
        yield from self._break_off()
        yield {"type": "RUN_FINISHED", **self._run(), "outcome": {"type": "cancelled"}}

    def _run_failed(self, event: RunFailed) -> Iterator[Chunk]:
        yield from self._break_off()
        yield {"type": "RUN_ERROR", "message": event.text or "", "code": event.code}

    def _break_off(self) -> Iterator[Chunk]:
        """Close everything, calls without result too."""
        yield from self._start()
        yield from self._close()
        yield from self._end_calls()
        for call_id in [each for each, has_result in self._called.items() if not has_result]:
            yield self._result(call_id, INTERRUPTED)
        yield from self._end_step()
        self._is_ended = True

    _encoders: ClassVar[Mapping[type, Callable[[Any, Any], Iterator[Chunk]]]] = {
        RunStarted: _run_started,
        StepStarted: _step_started,
        StepFinished: _step_finished,
        TextDelta: _text,
        ReasoningDelta: _reasoning,
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


def _content_of(event: ToolResult) -> str:
    if event.status == "denied":
        return "denied"
    if event.status == "failed":
        return event.error or "failed"
    if event.output is ABSENT:
        return ""
    return event.output if isinstance(event.output, str) else encode_json(event.output, "output")


def _usage_of(usage: Usage | None) -> Json:
    return None if usage is None else [facts_of(usage) or {}]
