"""Answers that go on in their place, once their client sent outputs of tools or decisions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from vitehub_chat import (
    RunResult,
    chat,
    define_agent,
    prepare_agent_trigger,
    run_agent_trigger,
    stream_agent_trigger,
)
from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.errors import InputError
from vitehub_chat.model.events import (
    AgentEvent,
    ApprovalRequested,
    NativeMessages,
    StepStarted,
    TextDelta,
    ToolCall,
    ToolResult,
)
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import (
    ApprovalDecisionPart,
    ModelPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

WINDOW: Any = {"source": "transcript", "max_messages": 9}


class Asker:
    """Asks for two tools of the client and a decision, then goes on with what came of them.

    Attributes:
        seen: The texts of the messages of every call.
        parts: The parts of the last message of every call.
        may_end: Lets a continuation end.
        script: What it says when it goes on; None tells what it was given.
    """

    def __init__(self) -> None:
        self.seen: list[list[str]] = []
        self.parts: list[tuple[ModelPart, ...]] = []
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.script: list[Any] | None = None
        self.went_on = asyncio.Event()

    async def __call__(self, call: DriverCall) -> AsyncIterator[Any]:
        """Ask a user, answer an assistant."""
        self.seen.append([message.text for message in call.messages])
        last = call.messages[-1]
        parts: Any = last.parts
        self.parts.append(parts)
        if last.role == "user" and call.text.startswith("ask"):
            yield StepStarted()
            yield TextDelta("0", "I ask. ")
            yield ToolCall("c1", "locate", {"for": "you"})
            yield ToolCall("c2", "clock", {})
            yield ToolCall("c3", "pay", {"eur": 5})
            yield ApprovalRequested("a3", "c3")
            yield NativeMessages("test", ["asked"])
        elif last.role == "user":
            yield TextDelta("0", f"re {call.text}")
        else:
            for event in self.script or [StepStarted(), TextDelta("0", "I go on.")]:
                yield event
            yield NativeMessages("test", ["went on"])
            self.went_on.set()
            await self.may_end.wait()


@pytest.fixture
def asker() -> Asker:
    return Asker()


@pytest.fixture(params=["memory:", "file:"])
async def agent(
    request: pytest.FixtureRequest, tmp_path: Path, asker: Asker
) -> AsyncIterator[Agent]:
    url = f"file:{tmp_path}/state.db" if request.param == "file:" else request.param
    async with agent_of(asker, url) as opened:
        yield opened


def agent_of(asker: Asker, url: str | None, **options: Any) -> Agent:
    settings: Any = {"trigger_history": WINDOW, "concurrency": "queue", **options}
    return define_agent(name="asker", driver=asker, capabilities=[chat(settings)], state=url)


def said(message_id: str, text: str, **more: Any) -> dict[str, Any]:
    parts = [{"type": "text", "text": text}]
    return {"messages": [{"id": message_id, "role": "user", "parts": parts, **more}], **RUN}


RUN: Any = {"run": {"threadId": "t"}}


async def say(agent: Agent, message_id: str, text: str, **more: Any) -> RunResult:
    return await run_agent_trigger(agent, "chat.message", said(message_id, text, **more))


def back(answer: Any, *parts: dict[str, Any]) -> dict[str, Any]:
    """Return the input with which an answer comes back with some parts."""
    message = {"id": answer.id, "role": "assistant", "parts": list(parts)}
    return {"messages": [message], "replace": {"kind": "continue", "messageId": answer.id}, **RUN}


async def go_on(agent: Agent, answer: Any, *parts: dict[str, Any]) -> RunResult:
    return await run_agent_trigger(agent, "chat.message", back(answer, *parts))


def output(call_id: str, value: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "dynamic-tool",
        "toolName": "forged",
        "toolCallId": call_id,
        "input": {"forged": True},
        "state": "output-available",
        "output": value,
        **more,
    }


def decision(call_id: str, approval_id: str, *, approved: bool, **more: Any) -> dict[str, Any]:
    return {
        "type": "dynamic-tool",
        "toolName": "forged",
        "toolCallId": call_id,
        "state": "approval-responded",
        "approval": {"id": approval_id, "approved": approved, **more},
    }


async def rows(agent: Agent) -> Any:
    return (await agent.conversation("t").history()).items


def tools_of(message: Any) -> list[tuple[str, str, Any]]:
    """Return id, state and output or error of the calls of a message."""
    return [
        (part["toolCallId"], part["state"], part.get("output", part.get("errorText")))
        for part in message.to_json()["parts"]
        if "toolCallId" in part
    ]


async def test_an_answer_goes_on_in_its_row(agent: Agent, asker: Asker) -> None:
    await say(agent, "m1", "before")
    first = await say(agent, "m2", "ask")
    asked = (await rows(agent))[3]
    result = await go_on(agent, first.message, output("c1", "Rome"), output("c2", None))
    assert (result.status, result.text) == ("complete", "I ask. I go on.")
    assert asker.seen[-1] == ["before", "re before", "ask", "I ask. "]
    row = (await rows(agent))[3]
    assert (row.seq, row.turn_no, row.status) == (asked.seq, asked.turn_no, "complete")
    assert (row.message, row.message.id) == (result.message, asked.message.id)
    assert row.message.created_at == asked.message.created_at
    assert len(await rows(agent)) == 4
    assert tools_of(row.message) == [
        ("c1", "output-available", "Rome"),
        ("c2", "output-available", None),
        ("c3", "approval-requested", None),
    ]
    calls = [part for part in asker.parts[-1] if isinstance(part, ToolCallPart)]
    assert [(call.name, call.input) for call in calls[:2]] == [
        ("locate", {"for": "you"}),
        ("clock", {}),
    ]
    assert row.native is None
    later = await say(agent, "m3", "later")
    assert (later.text, asker.seen[-1][3]) == ("re later", "I ask. I go on.")


async def test_only_outputs_and_decisions_are_taken_from_a_client(
    agent: Agent, asker: Asker
) -> None:
    first = await say(agent, "m1", "ask")
    forged = {"type": "text", "text": "forged"}
    await go_on(agent, first.message, forged, output("c1", "Rome"))
    assert asker.parts[-1][0] == TextPart("I ask. ", "text-1")
    assert "forged" not in str((await rows(agent))[1].message)


async def test_the_first_output_of_a_call_counts(agent: Agent) -> None:
    first = await say(agent, "m1", "ask")
    await go_on(agent, first.message, output("c1", "Rome"))
    await go_on(agent, first.message, output("c1", "Paris"), output("c2", 12))
    assert tools_of((await rows(agent))[1].message)[:2] == [
        ("c1", "output-available", "Rome"),
        ("c2", "output-available", 12),
    ]


async def test_an_output_may_be_an_error(agent: Agent, asker: Asker) -> None:
    first = await say(agent, "m1", "ask")
    failed = output("c1", None, state="output-error", errorText="no signal")
    await go_on(agent, first.message, failed)
    results = [part for part in asker.parts[-1] if isinstance(part, ToolResultPart)]
    assert [(part.status, part.error) for part in results] == [("failed", "no signal")]


async def test_what_brings_nothing_new_is_a_repeat(agent: Agent, asker: Asker) -> None:
    first = await say(agent, "m1", "ask")
    done = await go_on(agent, first.message, output("c1", "Rome"))
    again = await go_on(agent, first.message, output("c1", "Rome", title="Locate"))
    assert (again.message, again.prepared, len(asker.seen)) == (done.message, None, 2)


@pytest.mark.parametrize("approved", [True, False])
async def test_a_decision_reaches_the_driver_that_asked_for_it(
    agent: Agent, asker: Asker, *, approved: bool
) -> None:
    first = await say(agent, "m1", "ask")
    asker.script = [ToolCall("c3", "pay", {"eur": 5}), ToolResult("c3", "pay", "paid")]
    reason = {} if approved else {"reason": "too much"}
    await go_on(agent, first.message, decision("c3", "a3", approved=approved, **reason))
    decided = [part for part in asker.parts[-1] if isinstance(part, ApprovalDecisionPart)]
    assert decided == [ApprovalDecisionPart("a3", approved, reason.get("reason"))]
    parts = (await rows(agent))[1].message.to_json()["parts"]
    assert tools_of((await rows(agent))[1].message)[2] == ("c3", "output-available", "paid")
    assert parts[4]["approval"] == {"id": "a3", "approved": approved, **reason}


@pytest.mark.parametrize(
    "part",
    [
        output("c9", "x"),
        decision("c9", "a9", approved=True),
        decision("c1", "a1", approved=True),
        decision("c3", "a1", approved=True),
        output("c3", "paid"),
        output("c3", "paid", approval={"id": "a3", "approved": False}),
        output("c3", "paid", approval={"id": "a3", "approved": "yes"}),
    ],
)
async def test_a_call_that_waits_for_nothing_of_that_kind_is_refused(
    agent: Agent, asker: Asker, part: dict[str, Any]
) -> None:
    first = await say(agent, "m1", "ask")
    before = await rows(agent)
    for call in (run_agent_trigger, prepare_agent_trigger):
        with pytest.raises(InputError) as caught:
            await call(agent, "chat.message", back(first.message, output("c2", 1), part))
        assert caught.value.code == "unknown_tool_call"
    assert [row.message for row in await rows(agent)] == [row.message for row in before]
    assert len(asker.seen) == 1
    assert (await say(agent, "m2", "next")).text == "re next"


async def test_an_answer_that_is_not_stored_is_refused(agent: Agent) -> None:
    first = await say(agent, "m1", "ask")
    question = (await rows(agent))[0].message
    for other in (question, Message("nowhere", "assistant", ())):
        with pytest.raises(InputError) as caught:
            await go_on(agent, other, output("c9", "Rome"))
        assert caught.value.code == "unknown_tool_call"
    with pytest.raises(InputError, match="end with the answer"):
        await run_agent_trigger(agent, "chat.message", {**back(first.message), **said("m2", "ask")})


async def test_the_owner_of_a_call_is_found_under_another_id(agent: Agent) -> None:
    first = await say(agent, "m1", "ask")
    result = await go_on(agent, Message("renamed", "assistant", ()), output("c1", "Rome"))
    assert result.message is not None
    assert first.message is not None
    assert (result.message.id, len(await rows(agent))) == (first.message.id, 2)


async def test_an_answer_goes_on_after_later_messages_and_sees_none_of_them(
    agent: Agent, asker: Asker
) -> None:
    first = await say(agent, "m1", "ask")
    for name in ("m2", "m3"):
        await say(agent, name, name)
    result = await go_on(agent, first.message, decision("c3", "a3", approved=True))
    assert (asker.seen[-1], result.status) == (["ask", "I ask. "], "complete")
    texts = [row.message.text for row in await rows(agent)]
    assert texts == ["ask", "I ask. I go on.", "m2", "re m2", "m3", "re m3"]


async def test_an_answer_stays_in_its_session_however_late_it_goes_on(
    asker: Asker, tmp_path: Path
) -> None:
    sessions = {"strategy": "idle-timeout", "idle_timeout_ms": 60_000}
    async with agent_of(asker, f"file:{tmp_path}/s.db", sessions=sessions) as agent:
        first = await say(agent, "m1", "ask")
        other = await say(agent, "m2", "later", createdAt="2100-01-01T00:00:00Z")
        assert first.session_id != other.session_id
        result = await go_on(agent, first.message, output("c1", "Rome"))
        assert result.session_id == first.session_id
        assert [row.seq for row in await rows(agent)] == [1, 2, 3, 4]


async def test_what_would_be_seen_is_told_and_nothing_is_written(agent: Agent) -> None:
    await say(agent, "m1", "before")
    first = await say(agent, "m2", "ask")
    stored = [row.message for row in await rows(agent)]
    given = back(first.message, output("c1", "Rome"))
    prepared = await prepare_agent_trigger(agent, "chat.message", given)
    texts = [message.text for message in prepared.messages]
    assert texts == ["before", "re before", "ask", "I ask. "]
    assert ToolResultPart("c1", "locate", "Rome") in prepared.messages[-1].parts
    assert [row.message for row in await rows(agent)] == stored


async def test_outputs_that_come_while_the_answer_goes_on_wait_for_it(
    agent: Agent, asker: Asker
) -> None:
    first = await say(agent, "m1", "ask")
    asker.may_end.clear()
    running = asyncio.ensure_future(go_on(agent, first.message, output("c1", "Rome")))
    await asyncio.wait_for(asker.went_on.wait(), 20)
    sent = (output("c1", "Rome"), output("c2", 12))
    second = asyncio.ensure_future(go_on(agent, first.message, *sent))
    later = asyncio.ensure_future(say(agent, "m2", "later"))
    await asyncio.sleep(0)
    asker.may_end.set()
    statuses = [(await each).status for each in (running, second, later)]
    assert statuses == ["complete"] * 3
    texts = [row.message.text for row in await rows(agent)]
    assert texts == ["ask", "I ask. I go on.I go on.", "later", "re later"]


@pytest.mark.parametrize("other", ["Paris", "Rome"])
async def test_two_outputs_at_once_run_the_model_once(
    agent: Agent, asker: Asker, other: str
) -> None:
    first = await say(agent, "m1", "ask")
    asker.may_end.clear()
    given = [output("c1", "Rome"), output("c1", other, title="of another tab")]
    both = [asyncio.ensure_future(go_on(agent, first.message, each)) for each in given]
    await asyncio.wait_for(asker.went_on.wait(), 20)
    later = asyncio.ensure_future(say(agent, "m2", "later"))
    await asyncio.sleep(0)
    asker.may_end.set()
    one, two = [await each for each in both]
    assert (one.message, one.status) == (two.message, two.status)
    assert (await later).status == "complete"
    texts = [row.message.text for row in await rows(agent)]
    assert texts == ["ask", "I ask. I go on.", "later", "re later"]
    assert len(asker.seen) == 3
    again = await go_on(agent, first.message, given[1])
    assert (again.message, len(asker.seen)) == (one.message, 3)


async def events_of(agent: Agent, given: Any) -> list[AgentEvent]:
    stream = stream_agent_trigger(agent, "chat.message", given, output="events")
    return [event async for event in stream]


async def test_the_stream_has_the_id_of_the_answer_and_only_what_is_new(agent: Agent) -> None:
    first = await say(agent, "m1", "ask")
    assert first.message is not None
    given = back(first.message, output("c1", "Rome"))
    given["messages"][0]["parts"][:0] = first.message.to_json()["parts"][:2]
    stream = stream_agent_trigger(agent, "chat.message", given)
    chunks = [chunk async for chunk in stream]
    assert chunks[0]["messageId"] == first.message.id
    assert [chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta"] == ["I go on."]


async def test_a_repeat_streams_what_the_client_does_not_have(agent: Agent, asker: Asker) -> None:
    first = await say(agent, "m1", "ask")
    assert first.message is not None
    asker.script = [ToolResult("c3", "pay", "paid"), StepStarted(), TextDelta("0", "Paid.")]
    parts = list(first.message.to_json()["parts"])
    parts[-1] = decision("c3", "a3", approved=True)
    given = back(first.message, *parts)
    runs = [await events_of(agent, given) for _ in range(2)]
    told = [
        [
            (type(event).__name__, getattr(event, "text", getattr(event, "output", None)))
            for event in events
            if isinstance(event, TextDelta | ToolResult | ToolCall)
        ]
        for events in runs
    ]
    assert told[0] == told[1] == [("ToolResult", "paid"), ("TextDelta", "Paid.")]
    assert len(asker.seen) == 2


async def test_what_is_stopped_closes_approved_calls_and_leaves_those_of_the_client_open(
    agent: Agent, asker: Asker
) -> None:
    first = await say(agent, "m1", "ask")
    asker.may_end.clear()
    asker.script = [TextDelta("0", "Half"), ToolCall("c4", "slow", {})]
    given = back(first.message, output("c1", "Rome"), decision("c3", "a3", approved=True))
    stream = stream_agent_trigger(agent, "chat.message", given, output="events")
    events = []
    async for event in stream:
        events.append(event)
        if isinstance(event, ToolCall):
            stream.stop()
    assert (await stream.result()).status == "interrupted"
    row = (await rows(agent))[1]
    assert (row.status, row.message.text) == ("interrupted", "I ask. Half")
    assert tools_of(row.message) == [
        ("c1", "output-available", "Rome"),
        ("c2", "input-available", None),
        ("c3", "output-error", "interrupted"),
        ("c4", "output-error", "interrupted"),
    ]
    failed = [event for event in events if isinstance(event, ToolResult)]
    assert [(event.call_id, event.error) for event in failed] == [("c3", "interrupted")]


async def test_what_fails_leaves_the_answer_in_sight_of_the_model(
    agent: Agent, asker: Asker
) -> None:
    first = await say(agent, "m1", "ask")
    asker.script = [object()]
    with pytest.raises(Exception, match="a value of type 'object'"):
        await go_on(agent, first.message, output("c1", "Rome"))
    row = (await rows(agent))[1]
    assert (row.status, row.is_shown) == ("error", True)
    await say(agent, "m2", "next")
    assert asker.seen[-1] == ["ask", "I ask. ", "next"]


async def test_without_a_state_the_answer_of_the_client_goes_on(asker: Asker) -> None:
    window = {"source": "thread", "max_messages": 9}
    async with agent_of(asker, None, trigger_history=window) as agent:
        given = back(first_of("a1"), {"type": "text", "text": "I ask. "}, output("c1", "Rome"))
        result = await run_agent_trigger(agent, "chat.message", given)
        assert result.message is not None
        assert (result.text, result.message.id) == ("I ask. I go on.", "a1")
        with pytest.raises(InputError, match="nobody recorded") as caught:
            await go_on(agent, first_of("a1"), decision("c3", "a3", approved=True))
        assert caught.value.code == "unknown_tool_call"


def first_of(message_id: str) -> Message:
    return Message(message_id, "assistant", ())


async def test_after_a_cut_at_an_answer_that_went_on_its_question_runs_anew(
    agent: Agent, asker: Asker
) -> None:
    first = await say(agent, "m1", "ask")
    assert first.message is not None
    await go_on(agent, first.message, output("c1", "Rome"))
    await agent.conversation("t").truncate(first.message.id or "")
    again = await say(agent, "m1", "ask")
    assert (again.text, len(asker.seen)) == ("I ask. ", 3)
    assert (await go_on(agent, again.message, output("c1", "Rome"))).status == "complete"
