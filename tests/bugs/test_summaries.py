"""Summaries: what condensing must neither lose, repeat nor grow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.bugs.support import NAME, agent_on, message, rows_of, say
from tests.bugs.test_speed import TWICE, Effort, fill
from vitehub_chat import (
    Capability,
    RunResult,
    ToolSpec,
    chat,
    define_agent,
    prepare_agent_trigger,
    run_agent_trigger,
)
from vitehub_chat.agent.capability import InvocationContext
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.agent.drivers.pydantic_ai import create
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import ToolCallPart, ToolResultPart
from vitehub_chat.model.results import ContextBudget
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.stepped import SteppedAgentState

WINDOW = {"source": "transcript", "max_messages": 10_000}
CONTEXT: dict[str, Any] = {
    "estimator": "runes",
    "message_overhead": 0,
    "frame_overhead": 0,
    "limit": 1000,
    "target_ratio": 0.5,
    "min_verbatim": 2,
    "summary_max": 100,
    "retries": 0,
}


class Condenser:
    """A summarizer that keeps what it was shown, and answers by a rule."""

    def __init__(self, answer: str | Exception = "summary") -> None:
        self.shown: list[tuple[str, Sequence[Message]]] = []
        self.answer = answer

    async def __call__(self, previous: str, messages: Sequence[Message], **_limits: object) -> str:
        self.shown.append((previous, messages))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def options_of(summarizer: Condenser, **context: Any) -> dict[str, Any]:
    return {
        "trigger_history": WINDOW,
        "context": {**CONTEXT, "summarizer": summarizer, **context},
    }


def budget_of(result: RunResult) -> ContextBudget:
    assert result.context_budget is not None
    return result.context_budget


def tool_call(name: str, size: int = 1) -> dict[str, Any]:
    return {"type": "tool-call", "id": name, "name": "look", "input": {"q": "x" * size}}


def tool_result(name: str, size: int) -> dict[str, Any]:
    return {"type": "tool-result", "id": name, "name": "look", "output": "r" * size}


async def test_L222_a_window_without_a_user_message_is_really_condensed(
    state: SteppedAgentState,
) -> None:
    summarizer = Condenser()
    agent = agent_on(state, **options_of(summarizer))
    rows: list[dict[str, Any]] = []
    for number in range(5):
        rows.append({"role": "assistant", "parts": [tool_call(f"c{number}")]})
        rows.append({"role": "tool", "parts": [tool_result(f"c{number}", 200)]})
    await agent.conversation("t").append(rows)
    result = await say(agent, "now")
    assert budget_of(result).rolled == 8
    assert [len(messages) for _, messages in summarizer.shown] == [4, 4]
    outputs = [
        part.output
        for _, messages in summarizer.shown
        for each in messages
        for part in each.parts
        if isinstance(part, ToolResultPart)
    ]
    assert outputs == ["r" * 200] * 4


async def test_L116_a_summary_that_gains_nothing_ends_after_some_attempts(
    state: SteppedAgentState,
) -> None:
    summarizer = Condenser("s" * 100)
    agent = agent_on(state, **options_of(summarizer, min_verbatim=0, target_ratio=0.1))
    await agent.conversation("t").append([message("x" * 10, f"m{n}") for n in range(9)])
    result = await say(agent, "y" * 900, message_id="now")
    assert (result.status, budget_of(result).reason) == ("complete", "no_gain")
    assert len(summarizer.shown) == 3
    assert (await agent.conversation("t").get_summary("rolling")) is None


async def test_L145_twenty_updates_stay_within_the_size_without_nested_copies(
    state: SteppedAgentState,
) -> None:
    class Embedding(Condenser):
        async def __call__(
            self, previous: str, messages: Sequence[Message], **limits: object
        ) -> str:
            await super().__call__(previous, messages, **limits)
            return f"<conversation-summary>{previous}</conversation-summary> and more"

    agent = agent_on(state, **options_of(Embedding(), target_ratio=0.88))
    sizes = []
    for number in range(60):
        result = await say(agent, f"{number}".ljust(220, "x"))
        summary = await agent.conversation("t").get_summary("rolling")
        sizes.append(0 if summary is None else len(summary.text))
        assert result.prepared is not None
        assert (result.prepared.system or "").count("<conversation-summary>") == (
            summary is not None
        )
    rolling = await state.summaries.get_rolling(agent.conversation("t").key, session_id=None)
    assert rolling is not None
    assert rolling.version >= 20
    assert max(sizes) <= CONTEXT["summary_max"]


@pytest.mark.parametrize("entry", ["turn", "refusal"])
async def test_L137_every_way_to_condense_counts_against_one_limit(
    state: SteppedAgentState, entry: str
) -> None:
    refusals = [entry == "refusal"]

    class RefusedError(Exception):
        code = "context_length_exceeded"

    def answer(call: DriverCall) -> str:
        if refusals.pop() if refusals else False:
            raise RefusedError("maximum context length is 1 tokens")
        return f"re {call.text[:1]}"

    summarizer = Condenser()
    agent = agent_on(state, answer, **options_of(summarizer, max_loops=2))
    await agent.conversation("t").append([message("x" * 60, f"m{n}") for n in range(30)])
    result = await say(agent, "now")
    assert (budget_of(result).loops, len(summarizer.shown)) == (2, 2)
    assert budget_of(result).reason == "max_loops"


async def test_L137_the_tool_loop_counts_against_the_same_limit(state: SteppedAgentState) -> None:
    summarizer = Condenser()
    sent: list[int] = []

    async def answer(call: DriverCall) -> str:
        steps: list[Message] = []
        for number in range(6):
            parts = (
                ToolCallPart(f"c{number}", "look"),
                ToolResultPart(f"c{number}", "look", "r" * 200),
            )
            steps.append(Message(f"s{number}", "assistant", parts))
            sent.append(len(await call.before_request([*call.messages, *steps])))
        return "done"

    agent = agent_on(state, answer, **options_of(summarizer, max_loops=2))
    await agent.conversation("t").append([message("x" * 60, f"m{n}") for n in range(30)])
    await say(agent, "now")
    assert len(summarizer.shown) == 2


async def test_L263_a_batch_larger_than_the_model_takes_is_condensed_in_parts(
    state: SteppedAgentState,
) -> None:
    summarizer = Condenser()
    agent = agent_on(state, **options_of(summarizer, batch_messages=20))
    await agent.conversation("t").append([message("x" * 300, f"m{n}") for n in range(20)])
    result = await say(agent, "now")
    assert (budget_of(result).loops, budget_of(result).rolled) == (1, 18)
    assert [len(messages) for _, messages in summarizer.shown] == [3] * 6
    assert max(sum(len(m.text) for m in messages) for _, messages in summarizer.shown) <= 900


async def test_L154_ten_failures_leave_what_the_model_sees_as_large_as_it_was(
    state: SteppedAgentState,
) -> None:
    seen: list[tuple[str | None, int]] = []

    def look(call: DriverCall) -> str:
        seen.append((call.system, len(call.messages)))
        return "re"

    agent = agent_on(state, look, **options_of(Condenser(RuntimeError("no")), trigger_ratio=0.6))
    await agent.conversation("t").append([message("x" * 65, f"m{n}") for n in range(10)])
    for number in range(10):
        await say(agent, f"{number}", message_id="again" if number else None)
        await agent.conversation("t").truncate("again" if number else "0")
    assert seen == [(None, 11)] * 10
    assert len(await rows_of(agent)) == 10


async def test_L105_an_open_call_stays_verbatim_with_everything_that_answers_it(
    state: SteppedAgentState,
) -> None:
    summarizer = Condenser()
    agent = agent_on(state, **options_of(summarizer, min_verbatim=0))
    asked = {"type": "dynamic-tool", "toolName": "pay", "toolCallId": "c9", "input": {}}
    approval = {"state": "approval-requested", "approval": {"id": "a9"}}
    await agent.conversation("t").append(
        [
            *(message("x" * 200, f"m{n}") for n in range(3)),
            {"role": "assistant", "parts": [tool_call("c1"), {**asked, **approval}]},
            {"role": "tool", "parts": [tool_result("c1", 200)]},
            *(message("y" * 100, f"n{n}") for n in range(3)),
        ]
    )
    result = await say(agent, "now")
    assert (budget_of(result).rolled, budget_of(result).reason) == (3, "no_safe_unit")
    assert result.prepared is not None
    parts = [part for each in result.prepared.messages for part in each.parts]
    called = {part.id for part in parts if isinstance(part, ToolCallPart)}
    answered = {part.id for part in parts if isinstance(part, ToolResultPart)}
    assert (called, answered) == ({"c1", "c9"}, {"c1"})


async def test_L130_an_approval_that_waits_through_a_roll_is_resolved_afterwards(
    state: SteppedAgentState,
) -> None:
    ran: list[str] = []

    class Paying(Capability):
        name = "paying"

        def tools(self, _ctx: InvocationContext, /) -> Sequence[ToolSpec]:
            def pay() -> str:
                ran.append("paid")
                return "paid"

            return [ToolSpec(name="pay", description="Pays.", parameters={}, call=pay)]

    async def answer(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        yield "fine"

    agent = define_agent(
        name=NAME,
        driver=create({"model": FunctionModel(stream_function=answer)}),
        capabilities=[chat(options_of(Condenser(), limit=700)), Paying()],
        state=state,
    )
    asked = {"type": "dynamic-tool", "toolName": "pay", "toolCallId": "c1", "input": {}}
    pending = {"state": "approval-requested", "approval": {"id": "a1"}}
    waiting = {"id": "asking", "role": "assistant", "parts": [{**asked, **pending}]}
    conversation = agent.conversation("t")
    await conversation.append([message("x" * 100, f"m{n}") for n in range(4)])
    await conversation.append([waiting])
    await conversation.append([message("y" * 50, f"n{n}") for n in range(12)])
    result = await say(agent, "meanwhile")
    assert budget_of(result).rolled == 4
    assert "asking" in {each.id for each in (result.prepared and result.prepared.messages) or ()}
    decided = {"state": "approval-responded", "approval": {"id": "a1", "approved": True}}
    approved = {**waiting, "parts": [{**asked, **decided}]}
    given = {"messages": [approved], "run": {"threadId": "t"}}
    done = await run_agent_trigger(agent, "chat.message", given)
    assert (done.status, ran) == ("complete", ["paid"])


@pytest.mark.slow
async def test_L229_only_what_comes_after_the_anchor_is_read(path: Path) -> None:
    async with open_sqlite(f"file:{path}", durability="normal") as state:
        agent = agent_on(state, **options_of(Condenser()))
        await fill(agent, "small", 20)
        await fill(agent, "large", 10_000)
        for thread, stored in (("small", 20), ("large", 10_000)):
            key = agent.conversation(thread).key
            since = await state.summaries.get_rolling(key, session_id=None)
            assert since is not None
            await state.summaries.commit_roll(
                key, session_id=None, since=since, summary="so far", anchor=stored - 9
            )
        effort = Effort(state)
        await say(agent, "warm", "other")
        small = await effort.of(say(agent, "A", "small"))
        large = await effort.of(say(agent, "A", "large"))
        assert large <= TWICE * small
        result = await say(agent, "B", "large")
        assert result.prepared is not None
        assert len(result.prepared.messages) == 13
        assert len(result.prepared.selection) == 13
        given = {"messages": [message("C")], "run": {"threadId": "large"}}
        dry = await prepare_agent_trigger(agent, "chat.message", given)
        assert len(dry.messages) == 15
        await agent.aclose()


class Instructing(Capability):
    """Gives instructions."""

    name = "instructing"

    async def prepare(self, ctx: InvocationContext, /) -> None:
        """Set them."""
        ctx.instructions = "Be kind."


async def test_L304_system_messages_below_the_anchor_and_instructions_are_always_sent_once(
    state: SteppedAgentState,
) -> None:
    calls: list[DriverCall] = []

    def answer(call: DriverCall) -> str:
        calls.append(call)
        return "ok"

    agent = define_agent(
        name=NAME,
        driver={"run": answer},
        capabilities=[chat(options_of(Condenser(), min_verbatim=1)), Instructing()],
        state=state,
    )
    conversation = agent.conversation("t")
    await conversation.append([system("first", "s1"), system("second", "s2")])
    for number in range(3):
        await say(agent, f"{number}".ljust(100, "x"))
    # One system message arrives later, and is still verbatim when the window moves the first time.
    await conversation.append([system("third", "s3")])
    for number in range(3, 15):
        await say(agent, f"{number}".ljust(100, "x"))
    rolled = await conversation.get_summary("rolling")
    rows = {row.message.id: row.seq for row in await rows_of(agent)}
    assert rolled is not None
    assert (rolled.through_seq or 0) > rows["s3"]
    for call in calls:
        assert (call.system or "").count("Be kind.") == 1
        texts = [each.text for each in call.messages if each.role == "system"]
        assert texts == ["first", "second", "third"][: 2 if call in calls[:3] else 3]
    assert "<conversation-summary>" in (calls[-1].system or "")


def system(text: str, message_id: str) -> dict[str, Any]:
    return {**message(text, message_id), "role": "system"}
