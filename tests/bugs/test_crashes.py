"""Crashes, cancellation, partial persistence and poisoned history."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.bugs.support import NAME, WINDOW, agent_on, change, given, rows_of, say, texts_of
from tests.conversation.steps import counted_steps
from tests.faults.children import Children, at_point
from tests.faults.worker import Ahead
from vitehub_chat import chat, define_agent, open_agent_state, stream_agent_trigger
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.agent.drivers.pydantic_ai import create
from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.model.events import ToolCall, ToolResult
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.stepped import SteppedAgentState


@pytest.fixture(scope="module")
def children() -> Any:
    """Give a process whose children are killed."""
    process = Children()
    yield process
    process.close()


async def test_L323_a_turn_stopped_before_its_first_word_keeps_the_message(
    state: SteppedAgentState,
) -> None:
    has_begun = asyncio.Event()

    async def silent(_call: DriverCall) -> str:
        has_begun.set()
        await asyncio.Event().wait()
        return ""

    agent = agent_on(state, silent)
    stream = stream_agent_trigger(agent, "chat.message", given("A"))
    waiting = asyncio.create_task(stream.result())
    await has_begun.wait()
    assert await texts_of(agent) == ["A"]
    stream.stop()
    assert (await waiting).status == "interrupted"
    assert [(row.message.text, row.status) for row in await rows_of(agent)] == [
        ("A", "complete"),
        ("", "interrupted"),
    ]


async def test_L324_turns_before_a_killed_one_are_complete(children: Children, path: Path) -> None:
    url = f"file:{path}"
    await asyncio.to_thread(
        children.kill_at,
        at_point("noted", 7),
        url=url,
        ahead_s=0,
        threads={"t": ["A", "B", "C"]},
        hold="noted",
        times=7,
        tools=3,
    )
    async with open_agent_state(url, clock=Ahead(31)) as state:
        agent = define_agent(name="station", driver="echo", state=state, capabilities=[chat()])
        rows = await rows_of(agent)
        assert [(row.message.id, row.status) for row in rows[::2]] == [
            ("A", "complete"),
            ("B", "complete"),
            ("C", "complete"),
        ]
        answers = [(row.message.text, row.status) for row in rows[1::2]]
        assert answers == [("re A", "complete"), ("re B", "complete"), ("re ", "interrupted")]
        await agent.aclose()


async def test_L237_tool_results_before_a_kill_are_durable(children: Children, path: Path) -> None:
    url = f"file:{path}"
    await asyncio.to_thread(
        children.kill_at,
        at_point("noted", 2),
        url=url,
        ahead_s=0,
        threads={"t": ["A"]},
        hold="noted",
        times=2,
        tools=4,
    )
    async with open_agent_state(url, clock=Ahead(31)) as state:
        agent = define_agent(name="station", driver="echo", state=state, capabilities=[chat()])
        _, answer = await rows_of(agent)
        outputs = [part["output"] for part in answer.message.parts if "toolCallId" in part]  # type: ignore[index, operator]
        assert outputs == ["seen 0", "seen 1"]
        assert answer.status == "interrupted"
        await agent.aclose()


async def test_L158_after_a_kill_in_a_tool_the_next_turn_is_valid(
    children: Children, path: Path
) -> None:
    url = f"file:{path}"
    await asyncio.to_thread(
        children.kill_at,
        at_point("noted", 2),
        url=url,
        ahead_s=0,
        threads={"t": ["A"]},
        hold="noted",
        times=2,
        tools=4,
    )
    asked: list[list[ModelMessage]] = []

    async def answer(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        asked.append(messages)
        yield "fine"

    async with open_agent_state(url, clock=Ahead(31)) as state:
        agent = define_agent(
            name="station",
            driver=create({"model": FunctionModel(stream_function=answer)}),
            capabilities=[chat(trigger_history={"source": "transcript", "max_messages": 9})],
            state=state,
        )
        result = await say(agent, "B")
        await agent.aclose()
    assert (result.status, result.text) == ("complete", "fine")
    parts = [part for each in asked[0] for part in each.parts]
    calls = [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)]
    returns = [part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)]
    assert calls != []
    assert returns == calls


async def test_L246_a_turn_cancelled_after_its_last_word_is_saved(
    state: SteppedAgentState,
) -> None:
    said_all = asyncio.Event()

    async def answer(call: DriverCall) -> AsyncIterator[str]:
        yield "all "
        yield f"of {call.text}"
        said_all.set()
        await asyncio.Event().wait()

    agent = agent_on(state, answer)
    with counted_steps() as steps:
        turn = asyncio.create_task(say(agent, "A"))
        await said_all.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
    assert steps.problems == []
    assert await texts_of(agent) == ["A", "all of A"]


async def test_L186_what_was_said_before_a_cancel_is_kept_with_a_mark_and_shown_to_the_model(
    state: SteppedAgentState,
) -> None:
    half_said = asyncio.Event()
    seen: list[list[str]] = []

    async def answer(call: DriverCall) -> AsyncIterator[str]:
        seen.append([each.text for each in call.messages])
        yield "half"
        if call.text == "A":
            half_said.set()
            await asyncio.Event().wait()

    agent = agent_on(state, answer, trigger_history=WINDOW)
    turn = asyncio.create_task(say(agent, "A"))
    await half_said.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await say(agent, "B")
    assert seen == [["A"], ["A", "half", "B"]]
    assert [row.status for row in await rows_of(agent)][:2] == ["complete", "interrupted"]


async def test_L314_failed_answers_never_reach_the_model(state: SteppedAgentState) -> None:
    seen: list[list[tuple[str, str]]] = []

    def answer(call: DriverCall) -> str:
        seen.append([(each.role, each.text) for each in call.messages])
        if len(seen) < 4:
            raise RuntimeError("no answer")
        return "fine"

    agent = agent_on(state, answer, trigger_history=WINDOW)
    for text in "ABC":
        with pytest.raises(RuntimeError):
            await say(agent, text)
    assert (await say(agent, "D")).text == "fine"
    assert seen[-1] == [("user", text) for text in "ABCD"]


async def test_L290_an_old_answer_of_blank_text_and_calls_is_cleaned_when_it_is_read(
    path: Path,
) -> None:
    asked: list[list[ModelMessage]] = []

    async def answer(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        asked.append(messages)
        yield "fine"

    call = {"type": "dynamic-tool", "toolName": "look", "toolCallId": "c1", "input": {}}
    old: list[Mapping[str, Any]] = [
        {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi"}]},
        {
            "id": "a1",
            "role": "assistant",
            "parts": [
                {"type": "text", "text": "fine"},
                {**call, "state": "output-available", "output": 1},
            ],
        },
    ]
    async with open_agent_state(f"file:{path}") as state:
        agent = define_agent(
            name=NAME,
            driver=create({"model": FunctionModel(stream_function=answer)}),
            capabilities=[chat({"trigger_history": WINDOW})],
            state=state,
        )
        await agent.conversation("t").append(old)
        body = "replace(body, '\"fine\"', '\"  \\n\"')"
        changed = f"UPDATE $rows SET body = {body} WHERE message_id = 'a1'"  # noqa: S608
        assert await asyncio.to_thread(change, path, changed) == 1
        assert (await rows_of(agent))[1].message.text == "  \n"
        assert (await say(agent, "go on")).text == "fine"
        await agent.aclose()
    parts = [part for each in asked[-1] for part in each.parts]
    assert [part for part in parts if isinstance(part, TextPart)] == []
    assert [part.content for part in parts if isinstance(part, ToolReturnPart)] == [1]
    assert [type(each) for each in asked[-1]].count(ModelResponse) == 1


class FailingOnce:
    """The turns of a store that is away the first time an answer is finished."""

    def __init__(self, turns: Any) -> None:
        self._turns = turns
        self.failures = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._turns, name)

    async def finish(self, *subject: Any, **more: Any) -> Any:
        if not self.failures:
            self.failures += 1
            raise StateUnavailableError(outcome="not_written")
        return await self._turns.finish(*subject, **more)


async def test_L312_an_answer_that_could_not_be_saved_is_saved_again_and_not_made_again(
    state: SteppedAgentState,
) -> None:
    calls: list[str] = []

    async def answer(call: DriverCall) -> AsyncIterator[Any]:
        calls.append(call.text)
        yield ToolCall("c1", "look")
        yield ToolResult("c1", "look", "seen")
        yield "fine"

    turns = FailingOnce(state.turns)
    state.turns = cast(Any, turns)
    agent = agent_on(state, answer)
    result = await say(agent, "A")
    assert (result.status, turns.failures, calls) == ("complete", 1, ["A"])
    assert await texts_of(agent) == ["A", "fine"]
    assert (await say(agent, "A")).text == "fine"
    assert calls == ["A"]


async def test_L243_an_append_cancelled_anywhere_is_stored_whole_or_not_at_all(
    state: SteppedAgentState,
) -> None:
    agent = agent_on(state)
    seen: set[int] = set()
    with counted_steps() as steps:
        for number in range(200):
            conversation = agent.conversation(f"t{number}")
            rows = [{"id": f"m{n}", "role": "user", "parts": []} for n in range(3)]
            task = asyncio.create_task(conversation.append(rows))
            steps.arm(number, task.cancel)
            await asyncio.wait({task})
            is_over = steps.disarm()
            later = await conversation.append([{"id": "later", "role": "user", "parts": []}])
            count = len(await rows_of(agent, f"t{number}")) - 1
            assert count in {0, 3}
            assert (later[0].seq, task.cancelled() or count == 3) == (count + 1, True)
            seen.add(count)
            if is_over:
                break
    assert steps.problems == []
    assert seen == {0, 3}


async def test_L278_a_writer_cancelled_before_its_commit_stops_nobody_else(path: Path) -> None:
    async with open_sqlite(f"file:{path}") as state, open_sqlite(f"file:{path}") as other:
        agent, second = agent_on(state), agent_on(other)
        for number in range(20):
            rows = [{"id": f"a{number}", "role": "user", "parts": []}]
            task = asyncio.create_task(agent.conversation("t").append(rows))
            for _ in range(number % 4):
                await asyncio.sleep(0)
            task.cancel()
            async with asyncio.timeout(2):
                await second.conversation("u").append(
                    [{"id": f"b{number}", "role": "user", "parts": []}]
                )
            await asyncio.wait({task})
        assert len(await rows_of(second, "u")) == 20
        assert len(await rows_of(agent, "t")) in range(21)
        assert await asyncio.to_thread(can_write_soon, path)


def can_write_soon(path: Path) -> bool:
    with closing(sqlite3.connect(path, timeout=2, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    return True
