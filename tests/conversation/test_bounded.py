"""Bounded memory: threads that are over leave nothing behind, however many there were."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conversation.census import alive, grown, held_under
from tests.conversation.station import leftovers_of
from vitehub_chat import (
    Agent,
    chat,
    define_agent,
    open_agent_state,
    run_agent_trigger,
    stream_agent_trigger,
)
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.errors import ChatBusyError
from vitehub_chat.state.providers.memory import MemoryAgentState
from vitehub_chat.testing.clock import FakeClock

MANY = 400
TTL_S = 100
CONVERSATION = "vitehub_chat.state.records.ConversationRecord"
STRATEGIES: list[Any] = [
    "serial",
    "queue",
    "parallel",
    {"strategy": "parallel", "max_concurrent": 1},
    "drop",
    "reject",
    {"strategy": "debounce", "max_queue_size": 1},
]


class FailedError(Exception):
    """What the driver raises."""


async def answer(call: DriverCall) -> AsyncIterator[str]:
    """Answer, fail, or never end, as the message says."""
    yield "half "
    if call.text == "fail":
        raise FailedError
    if call.text in {"late", "stop", "cancel"}:
        await asyncio.Event().wait()
    yield "done"


def said(text: str, thread: str, **more: Any) -> dict[str, Any]:
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"messages": [message], "run": {"threadId": thread}, **more}


def agent_on(state: Any, strategy: Any, **options: Any) -> Agent:
    capability = chat(concurrency=strategy, dedupe_ttl_ms=TTL_S * 1000, **options)
    return define_agent(name="a", driver=answer, capabilities=[capability], state=state)


def tables_of(agent: Agent) -> Any:
    runtime = agent.runtime()
    state = runtime._state or runtime._turns
    assert isinstance(state, MemoryAgentState)
    return state._store.tables


async def held_by(agent: Agent) -> dict[str, int]:
    """Count what is kept of locks, queues and callers; ended entries are the claims."""
    tables = tables_of(agent)
    entries = tables.entries
    left = await leftovers_of(agent)
    groups = (entries._waiting, entries._expiring, entries._runs, entries._open, entries._all_open)
    counts = {**left, "locks": len(tables.locks), "groups": sum(map(len, groups))}
    return {name: count for name, count in counts.items() if count}


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
async def test_without_a_state_only_the_newest_ends_are_remembered(
    strategy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vitehub_chat.agent.runtime.MAX_ENDED_ENTRIES", 50)
    agent = agent_on(None, strategy)
    for number in range(MANY // 2):
        result = await run_agent_trigger(agent, "chat.message", said("hi", f"t{number}"))
        assert result.status == "complete"
    assert await held_by(agent) == {}
    assert len(tables_of(agent).entries) == 50
    await agent.aclose()


async def test_with_a_state_in_memory_claims_go_when_they_are_over() -> None:
    clock = FakeClock()
    async with open_agent_state("memory:", clock=clock) as state:
        agent = agent_on(state, "serial")
        most = 0
        for number in range(MANY):
            await run_agent_trigger(agent, "chat.message", said("hi", f"t{number}"))
            clock.advance(seconds=1)
            most = max(most, len(tables_of(agent).entries))
        assert await held_by(agent) == {}
        assert most <= TTL_S + 10
        clock.advance(seconds=TTL_S)
        assert await agent.sweep() == 0
        assert len(tables_of(agent).entries) == 0
        await agent.aclose()


async def test_objects_do_not_add_up_with_the_threads() -> None:
    clock = FakeClock()
    async with open_agent_state("memory:", clock=clock) as state:
        agent = agent_on(state, "serial")

        async def run_in(first: int, last: int) -> None:
            for number in range(first, last):
                await run_agent_trigger(agent, "chat.message", said("hi", f"t{number}"))
                await agent.conversation(f"t{number}").clear(delete_session=True)
                clock.advance(seconds=TTL_S)
            await agent.sweep()

        await run_in(0, 50)
        before, held_before = alive(), held_under(tables_of(agent))
        await run_in(50, 200)
        left, held = grown(before, alive()), held_under(tables_of(agent)) - held_before
        # A conversation keeps its counters, so that nothing old can match anything new.
        assert left == {CONVERSATION: 150}
        assert held <= 150 * 8
        await agent.aclose()


async def leave(agent: Agent, way: str, thread: str) -> None:
    """Run a turn that ends in one of the bad ways."""
    if way == "fail":
        with pytest.raises(FailedError):
            await run_agent_trigger(agent, "chat.message", said("fail", thread))
    elif way == "late":
        given = said("late", thread, timeoutMs=5)
        assert (await run_agent_trigger(agent, "chat.message", given)).finish_reason == "timeout"
    elif way == "cancel":
        turn = asyncio.create_task(run_agent_trigger(agent, "chat.message", said("cancel", thread)))
        await asyncio.sleep(0)
        turn.cancel()
        await asyncio.wait({turn})
    else:
        stream = stream_agent_trigger(agent, "chat.message", said("stop", thread), output="events")
        async for _ in stream:
            stream.stop()


@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
async def test_turns_that_fail_are_late_or_left_leave_nothing(
    strategy: Any,
    is_stored: bool,  # noqa: FBT001
) -> None:
    async with open_agent_state("memory:", clock=FakeClock()) as state:
        agent = agent_on(state if is_stored else None, strategy)
        for number in range(8):
            for way in ("fail", "late", "cancel", "stop"):
                await leave(agent, way, f"t{number}")
        assert await held_by(agent) == {}
        await agent.aclose()


@pytest.mark.parametrize("is_stored", [True, False])
async def test_messages_that_give_up_in_a_line_leave_nothing(
    is_stored: bool,  # noqa: FBT001
) -> None:
    policies: list[Any] = [
        {"strategy": "serial", "wait_timeout_ms": 5},
        {"strategy": "queue", "wait_timeout_ms": 5},
        {"strategy": "parallel", "max_concurrent": 1, "wait_timeout_ms": 5},
    ]
    for policy in policies:
        async with open_agent_state("memory:", clock=FakeClock()) as state:
            agent = agent_on(state if is_stored else None, policy)
            stream = stream_agent_trigger(agent, "chat.message", said("stop", "t"), output="events")
            await anext(stream)
            for number in range(5):
                given = said("hi", "t")
                given["messages"][0]["id"] = f"m{number}"
                with pytest.raises(ChatBusyError):
                    await run_agent_trigger(agent, "chat.message", given)
            stream.stop()
            await stream.result()
            assert await held_by(agent) == {}
            await agent.aclose()
