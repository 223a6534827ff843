"""The real npm client reads our streams: it shows what was answered, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

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
    Usage,
)
from vitehub_chat.model.results import ContextBudget
from vitehub_chat.streams.ui_message_stream import (
    DONE_FRAME,
    KEEP_ALIVE_FRAME,
    OPEN_FRAME,
    UIMessageStreamEncoder,
)

pytestmark = pytest.mark.service

SCRIPT = PACKAGES / "read_stream.mjs"
STARTED = RunStarted(message_id="m1", session_id="s1")
BUDGET = ContextBudget(limit=1000, used=250, used_pct=25.0, estimator="segments")

Read = Callable[..., dict[str, Any]]


@pytest.fixture(params=[6, 7])
def read(request: pytest.FixtureRequest) -> Read:
    """Give a function that has a version of the client read the stream of some events."""

    def run(*events: AgentEvent, earlier: Any = None) -> dict[str, Any]:
        encoder = UIMessageStreamEncoder(continued=earlier is not None)
        frames = [encoder.frame(chunk) for event in events for chunk in encoder.encode(event)]
        stream = KEEP_ALIVE_FRAME.join([OPEN_FRAME, *frames, DONE_FRAME])
        known = [] if earlier is None else [json.dumps(earlier)]
        seen: dict[str, Any] = run_node(SCRIPT, request.param, *known, given=stream.encode())
        assert seen.pop("invalid") == []
        return seen

    return run


def test_an_answer_arrives_whole(read: Read) -> None:
    seen = read(
        STARTED,
        BudgetChanged(budget=BUDGET),
        StepStarted(),
        ReasoningDelta("0", "Hm."),
        TextDelta("0", "Hé\u2028 \ud83d"),
        TextDelta("0", "\ude00 \ud83d"),
        SourceFound("s1", url="https://example.org", title="Example"),
        SourceFound("s2", media_type="text/plain"),
        FileProduced("image/png", "data:image/png;base64,AAAA"),
        StepFinished(),
        RunFinished(finish_reason="stop", usage=Usage(3, 2), budget=BUDGET),
    )
    assert seen["errors"] == []
    assert seen["last"] == "finish"
    assert seen["message"] == {
        "id": "m1",
        "role": "assistant",
        "metadata": {
            "sessionId": "s1",
            "status": "complete",
            "contextBudget": {
                "limit": 1000,
                "used": 250,
                "usedPct": 25,
                "unit": "tokens",
                "estimator": "segments",
                "loops": 0,
                "rolled": 0,
                "trimmed": 0,
                "over": False,
                "flushStatus": "off",
                "resolvedWindow": True,
            },
            "usage": {"inputTokens": 3, "outputTokens": 2},
        },
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "id": "0", "text": "Hm.", "state": "done"},
            {"type": "text", "text": "Hé\u2028 😀 \ufffd", "state": "done"},
            {
                "type": "source-url",
                "sourceId": "s1",
                "url": "https://example.org",
                "title": "Example",
            },
            {
                "type": "source-document",
                "sourceId": "s2",
                "mediaType": "text/plain",
                "title": "s2",
            },
            {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"},
        ],
    }


def test_tool_calls_are_dynamic_and_end_in_their_states(read: Read) -> None:
    seen = read(
        STARTED,
        StepStarted(),
        ToolInputDelta("c1", "search", '{"q":'),
        ToolInputDelta("c2", "clock", "{"),
        ToolCall("c1", "search", {"q": "x"}),
        ToolCall("c2", "clock", error="unreadable"),
        ToolCall("c3", "add", [1]),
        ToolCall("c4", "delete", {}),
        ToolCall("c5", "ask", {}),
        ToolResult("c3", "add", status="failed", error="overflow"),
        ToolResult("c1", "search", {"hits": 0}),
        ToolResult("c4", "delete", status="denied"),
        ToolResult("c6", "unheard", None),
        ApprovalRequested("a5", "c5"),
        StepFinished(),
        StepStarted(),
        TextDelta("0", "Done."),
        RunFinished(finish_reason="odd"),
    )
    assert seen["errors"] == []
    tools = [part for part in seen["message"]["parts"] if "toolCallId" in part]
    assert {part["type"] for part in tools} == {"dynamic-tool"}
    assert [(part["toolCallId"], part["state"]) for part in tools] == [
        ("c1", "output-available"),
        ("c2", "output-error"),
        ("c3", "output-error"),
        ("c4", "output-denied"),
        ("c5", "approval-requested"),
        ("c6", "output-available"),
    ]
    assert seen["message"]["parts"][-1]["text"] == "Done."


def test_a_continued_answer_stays_one_message_with_its_input(read: Read) -> None:
    call = {
        "type": "dynamic-tool",
        "toolName": "delete",
        "toolCallId": "c1",
        "state": "approval-responded",
        "input": {"id": 7},
        "approval": {"id": "a1", "approved": True},
    }
    earlier = {"id": "m1", "role": "assistant", "parts": [{"type": "step-start"}, call]}
    seen = read(
        STARTED,
        ToolResult("c1", "delete", "gone"),
        StepStarted(),
        TextDelta("0", "It is gone."),
        RunFinished(),
        earlier=earlier,
    )
    assert seen["errors"] == []
    assert seen["message"]["id"] == "m1"
    parts = seen["message"]["parts"]
    assert [part["type"] for part in parts] == ["step-start", "dynamic-tool", "step-start", "text"]
    assert (parts[1]["input"], parts[1]["output"]) == ({"id": 7}, "gone")


@pytest.mark.parametrize(
    ("end", "status", "last", "errors"),
    [
        (RunInterrupted(reason="timeout"), "interrupted", "abort", []),
        (RunFailed(text="Sorry."), "error", "error", ["Sorry."]),
        (RunFailed(text=None), "error", "error", [""]),
    ],
)
def test_a_run_that_ends_badly_leaves_nothing_streaming(
    read: Read, end: AgentEvent, status: str, last: str, errors: list[str]
) -> None:
    seen = read(
        STARTED,
        StepStarted(),
        ReasoningDelta("0", "Hm"),
        TextDelta("0", "Half"),
        ToolInputDelta("c1", "slow", "{"),
        ToolCall("c2", "slow", {}),
        end,
    )
    assert (seen["last"], seen["errors"]) == (last, errors)
    assert seen["message"]["metadata"]["status"] == status
    assert [part.get("state") for part in seen["message"]["parts"]] == [
        None,
        "done",
        "done",
        "output-error",
        "output-error",
    ]


def test_a_result_without_a_run_ends_at_once(read: Read) -> None:
    seen = read(RunFinished(status="dropped"))
    assert (seen["last"], seen["errors"]) == ("finish", [])
    assert seen["message"]["metadata"] == {"status": "dropped"}
    assert seen["message"]["parts"] == []
