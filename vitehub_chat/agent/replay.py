"""Replay: telling a result that was not driven here as the events of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vitehub_chat.model.events import (
    AgentEvent,
    ApprovalRequested,
    FileProduced,
    ReasoningDelta,
    RunFinished,
    RunInterrupted,
    RunStarted,
    TextDelta,
    ToolCall,
    ToolResult,
)
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import read_parts
from vitehub_chat.model.parts import (
    ApprovalRequestPart,
    MediaPart,
    ModelPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from vitehub_chat.model.results import RunResult


def replay_result(result: RunResult, known: Message | None = None) -> Iterator[AgentEvent]:
    """Yield the events of a recorded answer, or only the end of a message that was not run.

    Args:
        result: What was recorded.
        known: What the client has of the answer already; it gets the rest.
    """
    message = result.message
    if message is not None and message.id is not None:
        yield RunStarted(
            message_id=message.id,
            session_id=result.session_id,
            run_id=None if result.run is None else result.run.run_id,
            thread_id=None if result.run is None else result.run.thread_id,
            created_at=message.created_at,
        )
        is_known = known is not None and known.id == message.id
        have = known.parts if known is not None and is_known else ()
        yield from _late_results(message.parts[: len(have)], have)
        for index, part in enumerate(read_parts(message.parts[len(have) :])):
            yield from _replay_part(part, index)
    if result.status == "interrupted":
        yield RunInterrupted(reason=result.finish_reason or "interrupted")
    else:
        yield RunFinished(status=result.status, finish_reason=result.finish_reason)


def _late_results(parts: Sequence[Part], have: Sequence[Part]) -> Iterator[AgentEvent]:
    """Yield the results of calls that are there and that the client has without them."""
    known = {part.id for part in read_parts(have) if isinstance(part, ToolResultPart)}
    for index, part in enumerate(read_parts(parts)):
        if isinstance(part, ToolResultPart) and part.id not in known:
            yield from _replay_part(part, index)


def _replay_part(part: ModelPart, index: int) -> Iterator[AgentEvent]:
    match part:
        case TextPart(text):
            yield TextDelta(f"text-{index}", text)
        case ReasoningPart(provider, text, signature, item):
            yield ReasoningDelta(f"reasoning-{index}", text or "", provider, signature, item)
        case ToolCallPart(call_id, name, given):
            yield ToolCall(call_id, name, given)
        case ToolResultPart(call_id, name, output, status, error):
            yield ToolResult(call_id, name, output, status, error)
        case ApprovalRequestPart(approval_id, call_id):
            yield ApprovalRequested(approval_id, call_id)
        case MediaPart(_, media_type, data, url, name):
            yield FileProduced(media_type, url or f"data:{media_type};base64,{data}", name)
        case _:
            return
