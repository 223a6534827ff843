"""AG-UI: whole streams, each event valid for the protocol's own models, and no rule broken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ag_ui.core import Event
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

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
from vitehub_chat.streams.ag_ui import AgUiEncoder
from vitehub_chat.streams.sse import SSE_HEADERS

Chunk = dict[str, Any]

MODELS: TypeAdapter[Any] = TypeAdapter(Event)
STARTED = RunStarted(message_id="m1")
START: Chunk = {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"}
FINISH: Chunk = {
    "type": "RUN_FINISHED",
    "threadId": "t",
    "runId": "r",
    "outcome": {"type": "success"},
}
CANCELLED: Chunk = {**FINISH, "outcome": {"type": "cancelled"}}


def encode(*events: AgentEvent) -> list[Chunk]:
    """Return the events of a run, each found valid and without a key that the protocol lacks."""
    encoder = AgUiEncoder(thread_id="t", run_id="r")
    chunks = [chunk for event in events for chunk in encoder.encode(event)]
    for chunk in chunks:
        check_model(MODELS.validate_python(chunk))
    return chunks


def check_model(model: Any) -> None:
    """Fail where a model, or one below it, has a key that it does not know."""
    assert model.model_extra in ({}, None)
    for name in type(model).model_fields:
        value = getattr(model, name)
        for inner in value if isinstance(value, list) else [value]:
            if hasattr(inner, "model_extra"):
                check_model(inner)


def types(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk["type"] for chunk in chunks]


def test_a_text_is_one_message_under_the_id_of_the_answer() -> None:
    assert encode(STARTED, TextDelta("1", "Hel"), TextDelta("1", "lo"), RunFinished()) == [
        START,
        {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Hel"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "lo"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
        FINISH,
    ]


def test_names_of_the_run_come_from_the_event_where_the_client_gave_none() -> None:
    encoder = AgUiEncoder()
    started = RunStarted(message_id="m1", run_id="run", thread_id="thread", session_id="s")
    assert encoder.encode(started) == [{**START, "threadId": "thread", "runId": "run"}]
    assert AgUiEncoder().encode(STARTED) == [{**START, "threadId": "", "runId": "m1"}]


def test_steps_are_numbered_and_an_open_one_is_finished() -> None:
    chunks = encode(STARTED, StepStarted(), StepFinished(), StepStarted(), RunFinished())
    assert chunks[1:-1] == [
        {"type": "STEP_STARTED", "stepName": "step-1"},
        {"type": "STEP_FINISHED", "stepName": "step-1"},
        {"type": "STEP_STARTED", "stepName": "step-2"},
        {"type": "STEP_FINISHED", "stepName": "step-2"},
    ]


def test_reasoning_is_a_message_within_a_reasoning() -> None:
    chunks = encode(STARTED, ReasoningDelta("r1", "Hm"), TextDelta("1", "A"), RunFinished())
    assert chunks[1:5] == [
        {"type": "REASONING_START", "messageId": "m1:r1"},
        {"type": "REASONING_MESSAGE_START", "messageId": "m1:r1", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "m1:r1", "delta": "Hm"},
        {"type": "REASONING_MESSAGE_END", "messageId": "m1:r1"},
    ]
    assert chunks[5] == {"type": "REASONING_END", "messageId": "m1:r1"}


def test_reasoning_that_goes_on_later_is_another_message() -> None:
    events: list[AgentEvent] = [
        ReasoningDelta("r1", "a"),
        TextDelta("1", "b"),
        ReasoningDelta("r1", "c"),
    ]
    chunks = encode(STARTED, *events, RunFinished())
    opened = [chunk["messageId"] for chunk in chunks if chunk["type"] == "REASONING_START"]
    assert opened == ["m1:r1", "m1:r1:2"]


def test_input_of_a_tool_that_was_not_streamed_comes_whole() -> None:
    chunks = encode(STARTED, ToolCall("c1", "f", {"a": 1}), ToolResult("c1", "f", "ok"))
    assert chunks[1:] == [
        {
            "type": "TOOL_CALL_START",
            "toolCallId": "c1",
            "toolCallName": "f",
            "parentMessageId": "m1",
        },
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"a":1}'},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "c1:result",
            "toolCallId": "c1",
            "content": "ok",
            "role": "tool",
        },
    ]


def test_streamed_input_is_not_repeated_by_its_call() -> None:
    events: list[AgentEvent] = [ToolInputDelta("c1", "f", '{"a":'), ToolInputDelta("c1", "f", "1}")]
    chunks = encode(STARTED, *events, ToolCall("c1", "f", {"a": 1}))
    assert types(chunks[1:]) == [
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
    ]


def test_a_call_that_is_told_twice_is_called_once() -> None:
    chunks = encode(STARTED, ToolCall("c1", "f", {}), ToolCall("c1", "f", {}))
    assert types(chunks).count("TOOL_CALL_END") == 1


def test_text_after_a_result_is_the_next_message() -> None:
    events: list[AgentEvent] = [TextDelta("1", "a"), ToolCall("c1", "f"), ToolResult("c1", "f", 1)]
    chunks = encode(STARTED, *events, TextDelta("2", "b"), RunFinished())
    opened = [chunk["messageId"] for chunk in chunks if chunk["type"] == "TEXT_MESSAGE_START"]
    assert opened == ["m1", "m1:2"]


@pytest.mark.parametrize(
    ("result", "content"),
    [
        (ToolResult("c1", "f", {"a": [1]}), '{"a":[1]}'),
        (ToolResult("c1", "f", None), "null"),
        (ToolResult("c1", "f"), ""),
        (ToolResult("c1", "f", status="denied"), "denied"),
        (ToolResult("c1", "f", status="failed", error="no"), "no"),
        (ToolResult("c1", "f", status="failed"), "failed"),
    ],
)
def test_what_a_call_came_to_is_text(result: ToolResult, content: str) -> None:
    assert encode(STARTED, ToolCall("c1", "f"), result)[-1]["content"] == content


def test_arguments_that_do_not_parse_are_told_as_the_result() -> None:
    chunks = encode(STARTED, ToolCall("c1", "f", "{", "is no JSON"))
    assert (chunks[-1]["type"], chunks[-1]["content"]) == ("TOOL_CALL_RESULT", "is no JSON")


def test_an_approval_is_an_interrupt_at_the_end() -> None:
    events: list[AgentEvent] = [ToolCall("c1", "f", {}), ApprovalRequested("a1", "c1")]
    chunks = encode(STARTED, *events, RunFinished())
    interrupts = [
        {
            "id": "a1",
            "reason": "tool_approval",
            "toolCallId": "c1",
            "responseSchema": {
                "type": "object",
                "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
                "required": ["approved"],
            },
        }
    ]
    assert chunks[-1] == {**FINISH, "outcome": {"type": "interrupt", "interrupts": interrupts}}


@pytest.mark.parametrize("end", [RunFinished(), ApprovalRequested("a1", "c1")])
def test_a_call_whose_input_did_not_end_is_ended(end: AgentEvent) -> None:
    chunks = encode(STARTED, ToolInputDelta("c1", "f", "{"), end)
    assert "TOOL_CALL_END" in types(chunks)


def test_sources_files_and_budgets_are_custom_events() -> None:
    budget = ContextBudget(limit=10, used=5, used_pct=50.0)
    events: list[AgentEvent] = [
        SourceFound("s1", url="https://a"),
        FileProduced("image/png", "https://b"),
    ]
    chunks = encode(STARTED, *events, BudgetChanged(budget=budget))
    assert [(chunk["type"], chunk["name"]) for chunk in chunks[1:]] == [
        ("CUSTOM", "source"),
        ("CUSTOM", "file"),
        ("CUSTOM", "context_budget"),
    ]
    assert chunks[-1]["value"]["usedPct"] == 50.0


def test_usage_comes_with_the_end() -> None:
    usage = Usage(input_tokens=3, output_tokens=4, model="m")
    chunks = encode(STARTED, RunFinished(usage=usage))
    assert chunks[-1] == {
        **FINISH,
        "usage": [{"inputTokens": 3, "outputTokens": 4, "model": "m"}],
    }


def test_an_interrupted_run_closes_what_is_open() -> None:
    events: list[AgentEvent] = [
        StepStarted(),
        ToolCall("c1", "f"),
        ToolInputDelta("c2", "g", "{"),
        TextDelta("1", "a"),
    ]
    chunks = encode(STARTED, *events, RunInterrupted(reason="stopped"))
    assert types(chunks)[-6:] == [
        "TEXT_MESSAGE_END",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "TOOL_CALL_RESULT",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ]
    assert chunks[-1] == CANCELLED


def test_a_failed_run_ends_with_its_text_and_code() -> None:
    chunks = encode(STARTED, TextDelta("1", "a"), RunFailed(text="Sorry.", code="internal"))
    assert chunks[-1] == {"type": "RUN_ERROR", "message": "Sorry.", "code": "internal"}
    assert encode(RunFailed(text=None))[-1]["message"] == ""


def test_a_run_that_fails_at_once_starts_first() -> None:
    assert types(encode(RunFailed(text="Sorry."))) == ["RUN_STARTED", "RUN_ERROR"]
    assert types(encode(RunFinished(status="dropped"))) == ["RUN_STARTED", "RUN_FINISHED"]


def test_nothing_follows_the_end() -> None:
    ends = (RunFinished(), RunFailed(text="a"), RunInterrupted(reason="a"))
    for end in ends:
        assert encode(STARTED, end, TextDelta("1", "a"), *ends) == encode(STARTED, end)


def test_halves_of_a_pair_are_joined_and_a_lone_one_is_replaced() -> None:
    chunks = encode(STARTED, TextDelta("1", "a\ud83d"), TextDelta("1", "\ude00"), RunFinished())
    deltas = [chunk["delta"] for chunk in chunks if "delta" in chunk]
    assert "".join(deltas) == "a\U0001f600"
    lone = encode(STARTED, TextDelta("1", "a\ud83d"), RunFinished())
    assert "".join(chunk["delta"] for chunk in lone if "delta" in chunk) == "a\ufffd"


def test_a_frame_is_an_event_of_the_stream() -> None:
    encoder = AgUiEncoder(thread_id="t", run_id="r")
    assert encoder.headers == SSE_HEADERS
    (chunk,) = encoder.encode(STARTED)
    assert encoder.frame(chunk).startswith('data: {"type":"RUN_STARTED"')


IDS = st.sampled_from(["1", "2"])
TEXTS = st.sampled_from(["", "a", "bc", "\ud83d", "\ude00"])
BODY: st.SearchStrategy[AgentEvent] = st.one_of(
    st.builds(TextDelta, IDS, TEXTS),
    st.builds(ReasoningDelta, IDS, TEXTS),
    st.builds(ToolInputDelta, IDS, st.just("f"), TEXTS),
    st.builds(ToolCall, IDS, st.just("f"), st.sampled_from([None, {}, {"a": "\ud83d"}])),
    st.builds(ToolResult, IDS, st.just("f"), st.sampled_from([1, "\ud83d"])),
    st.builds(ApprovalRequested, st.just("a"), IDS),
    st.just(StepStarted()),
    st.just(StepFinished()),
    st.just(SourceFound("s", media_type="text/plain")),
    st.just(Done("stop")),
    st.just(NativeMessages("x", [])),
)
ENDS: st.SearchStrategy[AgentEvent] = st.sampled_from(
    [RunFinished(), RunInterrupted(reason="stopped"), RunFailed(text=None)]
)
PAIRS = {
    "TEXT_MESSAGE_START": ("TEXT_MESSAGE_END", "messageId"),
    "REASONING_START": ("REASONING_END", "messageId"),
    "REASONING_MESSAGE_START": ("REASONING_MESSAGE_END", "messageId"),
    "TOOL_CALL_START": ("TOOL_CALL_END", "toolCallId"),
    "STEP_STARTED": ("STEP_FINISHED", "stepName"),
}
INSIDE = {
    "TEXT_MESSAGE_CONTENT": "TEXT_MESSAGE_START",
    "REASONING_MESSAGE_CONTENT": "REASONING_MESSAGE_START",
    "TOOL_CALL_ARGS": "TOOL_CALL_START",
}


@given(body=st.lists(BODY, max_size=12), end=ENDS)
def test_whatever_a_driver_says_the_stream_keeps_the_rules(
    body: list[AgentEvent], end: AgentEvent
) -> None:
    chunks = encode(STARTED, *body, end)
    assert types(chunks)[0] == "RUN_STARTED"
    assert types(chunks)[-1] in {"RUN_FINISHED", "RUN_ERROR"}
    assert not {"RUN_FINISHED", "RUN_ERROR"} & set(types(chunks)[:-1])
    ends = {closing: (opening, key) for opening, (closing, key) in PAIRS.items()}
    opened, seen = set[tuple[str, str]](), set[tuple[str, str]]()
    for chunk in chunks:
        kind = chunk["type"]
        assert chunk.get("delta") != ""
        if kind in PAIRS:
            mark = (kind, chunk[PAIRS[kind][1]])
            assert mark not in seen
            opened.add(mark)
            seen.add(mark)
        elif kind in ends:
            opening, key = ends[kind]
            opened.remove((opening, chunk[key]))
        elif kind in INSIDE:
            opening = INSIDE[kind]
            assert (opening, chunk[PAIRS[opening][1]]) in opened
    assert opened == set()
