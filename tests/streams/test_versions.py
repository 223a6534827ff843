"""Versions: nothing is sent that only clients of version 7 know; those of version 6 take it all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import pytest

from tests.streams.npm import PACKAGES, run_node
from vitehub_chat.model.events import (
    AgentEvent,
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
from vitehub_chat.model.results import ContextBudget
from vitehub_chat.streams.chunks import Chunk
from vitehub_chat.streams.sse import sse_frame
from vitehub_chat.streams.ui_message_stream import UIMessageStreamEncoder

SCRIPT = PACKAGES / "read_stream.mjs"
SENT = {
    "abort",
    "data-context-budget",
    "error",
    "file",
    "finish",
    "finish-step",
    "message-metadata",
    "reasoning-delta",
    "reasoning-end",
    "reasoning-start",
    "source-document",
    "source-url",
    "start",
    "start-step",
    "text-delta",
    "text-end",
    "text-start",
    "tool-approval-request",
    "tool-input-available",
    "tool-input-delta",
    "tool-input-error",
    "tool-input-start",
    "tool-output-available",
    "tool-output-denied",
    "tool-output-error",
}
"""Every type of chunk that there is here."""

ONLY_7: list[Chunk] = [
    {"type": "custom", "kind": "a.b"},
    {"type": "reasoning-file", "url": "data:,x", "mediaType": "text/plain"},
    {"type": "reset-step"},
    {"type": "steering-message", "id": "m", "parts": []},
    {"type": "finish", "finishReason": "interrupted"},
]
STARTED = RunStarted(message_id="m1", session_id="s1", run_id="r1")
SAID: list[AgentEvent] = [
    StepStarted(),
    BudgetChanged(budget=ContextBudget(limit=10, used=1, used_pct=10.0, estimator="segments")),
    ReasoningDelta("0", "Hm.", provider="p", signature="s", item={"a": 1}),
    TextDelta("0", "Hi"),
    ToolInputDelta("c1", "t", "{"),
    ToolCall("c1", "t", {}),
    ToolResult("c1", "t", 1),
    ToolCall("c2", "t", {}),
    ToolResult("c2", "t", status="failed", error="no"),
    ToolCall("c3", "t", {}),
    ToolResult("c3", "t", status="denied"),
    ToolCall("c4", "t", error="unreadable"),
    ToolCall("c5", "t", {}),
    ApprovalRequested("a5", "c5"),
    SourceFound("s1", url="https://a", title="A"),
    SourceFound("s2", media_type="text/plain"),
    FileProduced("image/png", "https://a/b.png", "b.png"),
    ToolInputDelta("c6", "t", "{"),
]
REASONS = ["stop", "length", "content-filter", "tool-calls", "error", "interrupted", "odd", None]
ENDS: list[AgentEvent] = [
    *(RunFinished(finish_reason=reason) for reason in REASONS),
    *(RunFinished(status=status) for status in ("dropped", "filtered", "coalesced")),
    RunInterrupted(reason="stop"),
    RunFailed(text="Sorry."),
]


def encode(end: AgentEvent) -> list[Chunk]:
    encoder = UIMessageStreamEncoder()
    events = [STARTED, *SAID, StepFinished(), StepStarted(), end]
    return [chunk for event in events for chunk in encoder.encode(event)]


def read(version: int, chunks: Sequence[Chunk]) -> dict[str, Any]:
    """Let a version of the client read chunks; what it does not know is `invalid`."""
    stream = "".join(map(sse_frame, chunks)).encode()
    seen: dict[str, Any] = run_node(SCRIPT, version, given=stream)
    return seen


def test_the_streams_here_have_every_event_and_every_type_of_chunk() -> None:
    tried = {type(event) for event in [STARTED, StepFinished(), *SAID, *ENDS]}
    assert tried == set(UIMessageStreamEncoder._encoders)
    assert tried <= set(get_args(AgentEvent))
    assert {chunk["type"] for end in ENDS for chunk in encode(end)} == SENT
    assert SENT.isdisjoint(chunk["type"] for chunk in ONLY_7 if chunk["type"] != "finish")


@pytest.mark.service
@pytest.mark.parametrize("version", [6, 7])
def test_a_client_knows_every_chunk(version: int) -> None:
    chunks = [chunk for end in ENDS for chunk in encode(end)]
    distinct = list({sse_frame(chunk): chunk for chunk in chunks}.values())
    assert read(version, distinct)["invalid"] == []


@pytest.mark.service
def test_version_6_does_not_know_what_is_listed_as_version_7_only() -> None:
    start = {"type": "start", "messageId": "m1"}
    assert read(6, [start, *ONLY_7])["invalid"] == ONLY_7
    assert read(7, [start, *ONLY_7])["invalid"] == []
