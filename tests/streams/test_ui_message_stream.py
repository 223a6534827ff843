"""The UI message stream: whole streams as snapshots, then the rules no stream may break."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from vitehub_chat.errors import InputError
from vitehub_chat.model.events import (
    AgentEvent,
    ApprovalRequested,
    BudgetChanged,
    Done,
    FileProduced,
    NativeMessages,
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
from vitehub_chat.model.results import ContextBudget
from vitehub_chat.streams.ui_message_stream import (
    DONE_FRAME,
    HEADERS,
    KEEP_ALIVE_FRAME,
    OPEN_FRAME,
    UIMessageStreamEncoder,
    sse_frame,
)

Chunk = dict[str, Any]

STARTED = RunStarted(message_id="m1")
START: Chunk = {"type": "start", "messageId": "m1"}
FINISHED = RunFinished()
FINISH: Chunk = {"type": "finish", "messageMetadata": {"status": "complete"}}


def encode(*events: AgentEvent, continued: bool = False) -> list[Chunk]:
    encoder = UIMessageStreamEncoder(continued=continued)
    return [chunk for event in events for chunk in encoder.encode(event)]


def test_stream_of_an_answer_with_reasoning_text_sources_and_budget() -> None:
    budget = ContextBudget(limit=1000, used=250, used_pct=25.0)
    assert encode(
        RunStarted(
            message_id="m1",
            session_id="s1",
            run_id="r1",
            thread_id="t1",
            created_at=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
        ),
        BudgetChanged(budget=budget),
        StepStarted(),
        ReasoningDelta("0", "Let me "),
        ReasoningDelta("0", "see.", signature="sig"),
        TextDelta("1", "Hel"),
        TextDelta("1", "lo"),
        SourceFound("src1", url="https://example.org", title="Example"),
        SourceFound("src2", title="Manual", media_type="application/pdf"),
        SourceFound("src3"),
        FileProduced("image/png", "data:image/png;base64,AAAA", "a.png"),
        StepFinished(),
        Usage(10, 2, "echo"),
        NativeMessages("echo", []),
        Done("stop"),
        RunFinished(finish_reason="stop", usage=Usage(10, 2, "echo"), budget=budget),
    ) == snapshot(
        [
            {
                "type": "start",
                "messageId": "m1",
                "messageMetadata": {
                    "sessionId": "s1",
                    "runId": "r1",
                    "createdAt": "2026-01-02T03:04:05.678Z",
                },
            },
            {
                "type": "data-context-budget",
                "id": "context-budget",
                "data": {
                    "limit": 1000,
                    "used": 250,
                    "usedPct": 25.0,
                    "unit": "tokens",
                    "estimator": "",
                    "loops": 0,
                    "rolled": 0,
                    "trimmed": 0,
                    "over": False,
                    "flushStatus": "off",
                    "resolvedWindow": True,
                },
                "transient": True,
            },
            {"type": "start-step"},
            {"type": "reasoning-start", "id": "0"},
            {"type": "reasoning-delta", "id": "0", "delta": "Let me "},
            {"type": "reasoning-delta", "id": "0", "delta": "see."},
            {"type": "text-start", "id": "1"},
            {"type": "text-delta", "id": "1", "delta": "Hel"},
            {"type": "text-delta", "id": "1", "delta": "lo"},
            {
                "type": "source-url",
                "sourceId": "src1",
                "url": "https://example.org",
                "title": "Example",
            },
            {
                "type": "source-document",
                "sourceId": "src2",
                "mediaType": "application/pdf",
                "title": "Manual",
            },
            {
                "type": "source-document",
                "sourceId": "src3",
                "mediaType": "application/octet-stream",
                "title": "src3",
            },
            {"type": "file", "url": "data:image/png;base64,AAAA", "mediaType": "image/png"},
            {"type": "reasoning-end", "id": "0"},
            {"type": "text-end", "id": "1"},
            {"type": "finish-step"},
            {
                "type": "finish",
                "finishReason": "stop",
                "messageMetadata": {
                    "status": "complete",
                    "contextBudget": {
                        "limit": 1000,
                        "used": 250,
                        "usedPct": 25.0,
                        "unit": "tokens",
                        "estimator": "",
                        "loops": 0,
                        "rolled": 0,
                        "trimmed": 0,
                        "over": False,
                        "flushStatus": "off",
                        "resolvedWindow": True,
                    },
                    "usage": {"inputTokens": 10, "outputTokens": 2, "model": "echo"},
                },
            },
        ]
    )


def test_stream_of_parallel_tool_calls_in_steps() -> None:
    assert encode(
        STARTED,
        StepStarted(),
        ToolInputDelta("c1", "search", ""),
        ToolInputDelta("c1", "search", '{"q":'),
        ToolInputDelta("c2", "clock", "{"),
        ToolInputDelta("c1", "search", '"x"}'),
        ToolCall("c1", "search", {"q": "x"}),
        ToolCall("c2", "clock", error="unexpected end of JSON"),
        ToolCall("c3", "add", [1, 2]),
        ToolResult("c3", "add", status="failed", error="overflow"),
        ToolResult("c1", "search", {"hits": 0}),
        StepFinished(),
        StepStarted(),
        TextDelta("0", "Nothing."),
        StepFinished(),
        RunFinished(finish_reason="stop"),
    ) == snapshot(
        [
            {"type": "start", "messageId": "m1"},
            {"type": "start-step"},
            {"type": "tool-input-start", "toolCallId": "c1", "toolName": "search", "dynamic": True},
            {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"q":'},
            {"type": "tool-input-start", "toolCallId": "c2", "toolName": "clock", "dynamic": True},
            {"type": "tool-input-delta", "toolCallId": "c2", "inputTextDelta": "{"},
            {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '"x"}'},
            {
                "type": "tool-input-available",
                "toolCallId": "c1",
                "toolName": "search",
                "input": {"q": "x"},
                "dynamic": True,
            },
            {
                "type": "tool-input-error",
                "toolCallId": "c2",
                "toolName": "clock",
                "input": None,
                "errorText": "unexpected end of JSON",
                "dynamic": True,
            },
            {
                "type": "tool-input-available",
                "toolCallId": "c3",
                "toolName": "add",
                "input": [1, 2],
                "dynamic": True,
            },
            {
                "type": "tool-output-error",
                "toolCallId": "c3",
                "errorText": "overflow",
                "dynamic": True,
            },
            {
                "type": "tool-output-available",
                "toolCallId": "c1",
                "output": {"hits": 0},
                "dynamic": True,
            },
            {"type": "finish-step"},
            {"type": "start-step"},
            {"type": "text-start", "id": "0"},
            {"type": "text-delta", "id": "0", "delta": "Nothing."},
            {"type": "text-end", "id": "0"},
            {"type": "finish-step"},
            {"type": "finish", "finishReason": "stop", "messageMetadata": {"status": "complete"}},
        ]
    )


def test_stream_of_a_call_that_waits_for_approval() -> None:
    assert encode(
        STARTED,
        StepStarted(),
        ToolCall("c1", "delete", {"id": 7}),
        ApprovalRequested("a1", "c1"),
        RunFinished(finish_reason="tool_call"),
    ) == snapshot(
        [
            {"type": "start", "messageId": "m1"},
            {"type": "start-step"},
            {
                "type": "tool-input-available",
                "toolCallId": "c1",
                "toolName": "delete",
                "input": {"id": 7},
                "dynamic": True,
            },
            {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"},
            {"type": "finish-step"},
            {
                "type": "finish",
                "finishReason": "tool-calls",
                "messageMetadata": {"status": "complete"},
            },
        ]
    )


def test_stream_of_a_continued_answer_begins_a_step_of_its_own() -> None:
    steps: list[AgentEvent] = [
        StepStarted(),
        TextDelta("0", "a"),
        StepFinished(),
        StepStarted(),
        TextDelta("0", "b"),
    ]
    chunks = encode(STARTED, *steps, FINISHED, continued=True)
    assert [chunk["type"] for chunk in chunks] == [
        "start",
        *("start-step", "text-start", "text-delta", "text-end", "finish-step"),
        *("start-step", "text-start", "text-delta", "text-end", "finish-step"),
        "finish",
    ]


def test_stream_of_a_continued_answer_speaks_of_calls_that_the_client_has() -> None:
    assert encode(
        STARTED,
        ToolResult("c1", "delete", status="denied"),
        ToolResult("c2", "delete", None),
        FINISHED,
        continued=True,
    ) == snapshot(
        [
            {"type": "start", "messageId": "m1"},
            {"type": "start-step"},
            {"type": "tool-output-denied", "toolCallId": "c1"},
            {"type": "tool-output-available", "toolCallId": "c2", "output": None, "dynamic": True},
            {"type": "finish-step"},
            {"type": "finish", "messageMetadata": {"status": "complete"}},
        ]
    )


def test_stream_of_a_run_that_was_interrupted() -> None:
    assert encode(
        STARTED,
        StepStarted(),
        TextDelta("0", "Half an"),
        ToolCall("c1", "slow", {}),
        ToolInputDelta("c2", "slow", '{"a'),
        ToolCall("c3", "ask", {}),
        ApprovalRequested("a3", "c3"),
        RunInterrupted(reason="stop"),
    ) == snapshot(
        [
            {"type": "start", "messageId": "m1"},
            {"type": "start-step"},
            {"type": "text-start", "id": "0"},
            {"type": "text-delta", "id": "0", "delta": "Half an"},
            {
                "type": "tool-input-available",
                "toolCallId": "c1",
                "toolName": "slow",
                "input": {},
                "dynamic": True,
            },
            {"type": "tool-input-start", "toolCallId": "c2", "toolName": "slow", "dynamic": True},
            {"type": "tool-input-delta", "toolCallId": "c2", "inputTextDelta": '{"a'},
            {
                "type": "tool-input-available",
                "toolCallId": "c3",
                "toolName": "ask",
                "input": {},
                "dynamic": True,
            },
            {"type": "tool-approval-request", "approvalId": "a3", "toolCallId": "c3"},
            {"type": "text-end", "id": "0"},
            {
                "type": "tool-output-error",
                "toolCallId": "c1",
                "errorText": "interrupted",
                "dynamic": True,
            },
            {
                "type": "tool-input-error",
                "toolCallId": "c2",
                "toolName": "slow",
                "input": None,
                "errorText": "interrupted",
                "dynamic": True,
            },
            {"type": "message-metadata", "messageMetadata": {"status": "interrupted"}},
            {"type": "abort", "reason": "stop"},
        ]
    )


def test_stream_of_a_run_that_failed() -> None:
    assert encode(
        STARTED,
        StepStarted(),
        TextDelta("0", "Half"),
        RunFailed(text="Sorry.", code="internal"),
    ) == snapshot(
        [
            {"type": "start", "messageId": "m1"},
            {"type": "start-step"},
            {"type": "text-start", "id": "0"},
            {"type": "text-delta", "id": "0", "delta": "Half"},
            {"type": "text-end", "id": "0"},
            {"type": "message-metadata", "messageMetadata": {"status": "error"}},
            {"type": "error", "errorText": "Sorry."},
        ]
    )


def test_stream_of_a_result_without_a_run_of_its_own() -> None:
    assert encode(RunFinished(status="dropped")) == snapshot(
        [
            {"type": "start", "messageMetadata": {"status": "dropped"}},
            {"type": "finish", "messageMetadata": {"status": "dropped"}},
        ]
    )


def test_stream_of_a_coalesced_result() -> None:
    assert encode(STARTED, TextDelta("0", "Both."), RunFinished(status="coalesced")) == snapshot(
        [
            {"type": "start", "messageId": "m1"},
            {"type": "text-start", "id": "0"},
            {"type": "text-delta", "id": "0", "delta": "Both."},
            {"type": "text-end", "id": "0"},
            {"type": "finish", "messageMetadata": {"status": "coalesced", "coalesced": True}},
        ]
    )


def test_a_failure_that_shows_nothing_has_an_empty_text() -> None:
    assert encode(STARTED, RunFailed(text=None))[-1] == {"type": "error", "errorText": ""}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content-filter"),
        ("content-filter", "content-filter"),
        ("tool_call", "tool-calls"),
        ("tool-calls", "tool-calls"),
        ("error", "error"),
        ("other", "other"),
        ("timeout", "other"),
        ("", "other"),
    ],
)
def test_a_finish_reason_is_one_that_clients_know(reason: str, expected: str) -> None:
    assert encode(STARTED, RunFinished(finish_reason=reason))[-1]["finishReason"] == expected


def test_no_finish_reason_is_left_out_and_never_null() -> None:
    assert encode(STARTED, RunFinished(finish_reason=None)) == [START, FINISH]


def test_a_second_start_does_not_rename_the_message() -> None:
    assert encode(STARTED, RunStarted(message_id="m2"), FINISHED) == [START, FINISH]


def test_nothing_follows_the_end() -> None:
    assert encode(STARTED, FINISHED, TextDelta("0", "late"), RunFailed(text="x")) == [START, FINISH]


def test_empty_deltas_are_not_sent() -> None:
    assert encode(STARTED, TextDelta("0", ""), ReasoningDelta("0", ""), FINISHED) == [START, FINISH]


def test_text_and_reasoning_may_have_the_same_part_id() -> None:
    chunks = encode(STARTED, ReasoningDelta("0", "r"), TextDelta("0", "t"), FINISHED)
    assert [chunk["type"] for chunk in chunks] == [
        "start",
        "reasoning-start",
        "reasoning-delta",
        "text-start",
        "text-delta",
        "reasoning-end",
        "text-end",
        "finish",
    ]


def test_a_part_that_goes_on_in_the_next_step_starts_again() -> None:
    chunks = encode(
        STARTED, StepStarted(), TextDelta("0", "a"), StepStarted(), TextDelta("0", "b"), FINISHED
    )
    assert [chunk["type"] for chunk in chunks] == [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]


def test_a_result_without_its_call_brings_the_call_along() -> None:
    assert encode(STARTED, ToolResult("c1", "search", 3), FINISHED)[1:-1] == [
        {
            "type": "tool-input-available",
            "toolCallId": "c1",
            "toolName": "search",
            "input": {},
            "dynamic": True,
        },
        {"type": "tool-output-available", "toolCallId": "c1", "output": 3, "dynamic": True},
    ]


def test_input_that_comes_after_its_call_does_not_reopen_it() -> None:
    chunks = encode(STARTED, ToolCall("c1", "f", {}), ToolInputDelta("c1", "f", "{}"), FINISHED)
    assert [chunk["type"] for chunk in chunks] == ["start", "tool-input-available", "finish"]


def test_input_that_never_became_a_call_is_closed_at_the_end() -> None:
    chunks = encode(STARTED, StepStarted(), ToolInputDelta("c1", "f", "{"), FINISHED)
    assert chunks[-3] == {
        "type": "tool-input-error",
        "toolCallId": "c1",
        "toolName": "f",
        "input": None,
        "errorText": "interrupted",
        "dynamic": True,
    }


def test_a_surrogate_pair_split_over_two_deltas_is_joined() -> None:
    deltas = ["a\ud83d", "\ude00b", "\ud83d", "\ude00"]
    text = encode(STARTED, *(TextDelta("0", delta) for delta in deltas), FINISHED)
    tool = encode(STARTED, *(ToolInputDelta("c", "f", delta) for delta in deltas), FINISHED)

    assert [chunk["delta"] for chunk in text if "delta" in chunk] == ["a", "😀b", "😀"]
    assert [chunk["inputTextDelta"] for chunk in tool if "inputTextDelta" in chunk] == [
        "a",
        "😀b",
        "😀",
    ]


def test_lone_surrogates_are_replaced_in_deltas_and_everywhere_else() -> None:
    chunks = encode(
        STARTED,
        TextDelta("0", "\ude00a\ud83d"),
        TextDelta("0", "b\ud83d"),
        ToolCall("c1", "f", {"q\ud83d": ["\ude00"]}),
        ToolResult("c1", "f", "\ud83d"),
        RunFailed(text="no \ud83d"),
    )
    assert [chunk["delta"] for chunk in chunks if "delta" in chunk] == [
        "\ufffda",
        "\ufffdb",
        "\ufffd",
    ]
    assert [chunk["input"] for chunk in chunks if "input" in chunk] == [{"q\ufffd": ["\ufffd"]}]
    assert [chunk["output"] for chunk in chunks if "output" in chunk] == ["\ufffd"]
    assert chunks[-1]["errorText"] == "no \ufffd"
    "".join(sse_frame(chunk) for chunk in chunks).encode()


def test_what_is_not_json_is_refused_by_a_typed_error() -> None:
    with pytest.raises(InputError, match="output: is not a JSON value"):
        encode(STARTED, ToolCall("c1", "f", {}), ToolResult("c1", "f", float("nan")))


def test_headers_name_the_protocol() -> None:
    assert dict(HEADERS) == {
        "content-type": "text/event-stream",
        "x-vercel-ai-ui-message-stream": "v1",
        "cache-control": "no-cache, no-transform",
        "connection": "keep-alive",
        "x-accel-buffering": "no",
    }


def test_a_frame_is_one_line_of_json_and_an_empty_line() -> None:
    text = "a\r\nb\x0b\x85\u2028\u2029é"
    frame = sse_frame({"type": "text-delta", "delta": text})

    assert frame.splitlines() == [frame.removesuffix("\n\n"), ""]
    assert "é" in frame
    assert json.loads(frame.removeprefix("data: ")) == {"type": "text-delta", "delta": text}


def test_comments_and_the_last_frame() -> None:
    assert OPEN_FRAME == ": stream-open\n\n"
    assert KEEP_ALIVE_FRAME == ": keep-alive\n\n"
    assert DONE_FRAME == "data: [DONE]\n\n"


ids = st.sampled_from(["0", "1"])
texts = st.sampled_from(["", "a", "\ud83d", "\ude00", "é"])
statuses = st.sampled_from(["completed", "failed", "denied"])
reasons = st.sampled_from([None, "stop", "tool_call", "odd"])
driver_events: st.SearchStrategy[AgentEvent] = st.one_of(
    st.builds(StepStarted),
    st.builds(StepFinished),
    st.builds(TextDelta, ids, texts),
    st.builds(ReasoningDelta, ids, texts),
    st.builds(ToolInputDelta, ids, ids, texts),
    st.builds(ToolCall, ids, ids, st.none(), st.none() | texts),
    st.builds(ToolResult, ids, ids, st.none(), statuses, st.none() | texts),
    st.builds(ApprovalRequested, ids, ids),
    st.builds(SourceFound, ids, st.none() | texts),
    st.builds(RunStarted, message_id=ids),
    st.builds(Done, reasons),
)
ends: st.SearchStrategy[AgentEvent] = st.one_of(
    st.builds(RunFinished, finish_reason=reasons),
    st.builds(RunInterrupted, reason=texts),
    st.builds(RunFailed, text=st.none() | texts),
)
runs = st.tuples(st.lists(driver_events | ends, max_size=30), ends).map(lambda it: [*it[0], it[1]])

REASONS = {"stop", "length", "content-filter", "tool-calls", "error", "other"}


class Reader:
    """Follows a stream as a client does, and fails where the client would."""

    def __init__(self) -> None:
        self.open: set[tuple[str, str]] = set()
        self.streaming: set[str] = set()
        self.calls: set[str] = set()
        self.in_step = False

    def read(self, chunk: Chunk) -> None:
        kind: str = chunk["type"]
        if kind.startswith(("text-", "reasoning-")):
            self._read_part(*kind.split("-", 1), part_id=chunk["id"])
        elif kind.startswith("tool-"):
            self._read_tool(kind, chunk["toolCallId"])
        elif kind == "start-step":
            assert not self.in_step
            self.in_step = True
        elif kind == "finish-step":
            assert self.in_step
            assert not self.open
            self.in_step = False
        elif kind in {"finish", "abort", "error"}:
            assert not self.open
            assert not self.streaming
            assert chunk.get("finishReason", "stop") in REASONS

    def _read_part(self, kind: str, what: str, *, part_id: str) -> None:
        assert ((kind, part_id) in self.open) == (what != "start")
        if what == "start":
            self.open.add((kind, part_id))
        if what == "end":
            self.open.remove((kind, part_id))

    def _read_tool(self, kind: str, call_id: str) -> None:
        if kind == "tool-input-start":
            assert call_id not in self.calls
            self.streaming.add(call_id)
        elif kind == "tool-input-delta":
            assert call_id in self.streaming
        elif not kind.startswith("tool-input"):
            assert call_id in self.calls
            self.streaming.discard(call_id)
        else:
            self.streaming.discard(call_id)
        self.calls.add(call_id)


@given(runs)
def test_every_delta_has_its_start_and_every_start_its_end_before_the_end(
    events: Sequence[AgentEvent],
) -> None:
    chunks = encode(*events)
    reader = Reader()
    for chunk in chunks:
        reader.read(chunk)
    kinds = [chunk["type"] for chunk in chunks]
    assert [kind for kind in kinds if kind in {"finish", "abort", "error"}] == kinds[-1:]
    assert kinds.count("start") <= 1


@given(runs)
def test_every_stream_can_be_written_as_utf_8(events: Sequence[AgentEvent]) -> None:
    for chunk in encode(*events):
        assert json.loads(sse_frame(chunk).encode().decode().removeprefix("data: ")) == chunk


@given(st.text(st.sampled_from("a\ud83d\ude00é😀")), st.lists(st.integers(0, 20)))
def test_text_arrives_whole_however_it_is_cut(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(places)]
    chunks = encode(STARTED, *(TextDelta("0", piece) for piece in pieces), FINISHED)

    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert "".join(chunk.get("delta", "") for chunk in chunks) == whole
