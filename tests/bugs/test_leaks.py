"""Memory that grows with every thread, turn or provider."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.bugs.support import agent_on, given, say
from tests.bugs.threads import ENDINGS, KEPT_S, Ending, Threads, resident_bytes
from tests.conversation.census import alive, grown
from tests.conversation.station import leftovers_of
from tests.faults.homes import KINDS, new_home, open_home
from vitehub_chat import (
    chat,
    define_agent,
    open_agent_state,
    run_agent_trigger,
    stream_agent_trigger,
)
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.state.memory import store as memory_store
from vitehub_chat.state.providers.memory import MemoryAgentState
from vitehub_chat.state.providers.sqlite import worker as sqlite_worker
from vitehub_chat.testing.clock import FakeClock

MANY = 1500
MIB = 1 << 20


async def test_L201_threads_that_are_over_leave_neither_locks_nor_seats_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("vitehub_chat.agent.runtime.MAX_ENDED_ENTRIES", 500)
    agent = agent_on(None)
    for number in range(MANY):
        await say(agent, "A", f"t{number}")
    turns = agent.runtime()._turns
    assert isinstance(turns, MemoryAgentState)
    tables = turns._store.tables
    assert sum((await leftovers_of(agent)).values()) == 0
    assert len(tables.locks) == 0
    assert len(tables.entries) == 500
    await agent.aclose()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
async def test_L201_very_many_threads_leave_neither_locks_nor_entries_nor_memory_behind(
    ending: Ending,
) -> None:
    async with open_agent_state("memory:") as state:
        assert isinstance(state, MemoryAgentState)
        threads = Threads(state, ending)
        threads.run(ending.count // 10)
        warm = resident_bytes()
        threads.run(ending.count - ending.count // 10)
        assert resident_bytes() - warm < 16 * MIB
        assert threads.most_entries <= threads.most_allowed
        threads.pass_time()
        assert threads.left() == {}


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_L201_thousands_of_turns_of_a_thread_each_leave_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("vitehub_chat.agent.runtime.MAX_ENDED_ENTRIES", 100)
    agent = agent_on(None)

    async def run_in(first: int, last: int) -> None:
        for number in range(first, last):
            await say(agent, "A", f"t{number}")

    await run_in(0, 1000)
    before, warm = alive(), resident_bytes()
    await run_in(1000, 4000)
    assert grown(before, alive()) == {}
    assert resident_bytes() - warm < 16 * MIB
    assert sum((await leftovers_of(agent)).values()) == 0
    await agent.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_L201_stored_locks_and_entries_of_many_threads_go_when_they_are_over(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    home, clock = new_home(kind, request, tmp_path), FakeClock()
    async with open_home(home, clock=clock) as state:
        short = chat(dedupe_ttl_ms=KEPT_S * 1000)
        agent = define_agent(name="a", driver="echo", capabilities=[short], state=state)
        for start in range(0, 200, 25):
            await asyncio.gather(*(say(agent, "A", f"t{n}") for n in range(start, start + 25)))
        assert home.ask("SELECT count(*) FROM $locks") == [(0,)]
        assert home.ask("SELECT count(*) FROM $entries") == [(200,)]
        clock.advance(seconds=KEPT_S)
        assert await agent.sweep() == 0
        # A sweep forgets some of them in a file; where it is costly they wait for the cleanup.
        await state.admin.cleanup()
        assert home.ask("SELECT count(*) FROM $entries") == [(0,)]
        await agent.aclose()


async def test_L174_turns_that_fail_time_out_or_are_stopped_leave_no_entry() -> None:
    async def answer(call: DriverCall) -> AsyncIterator[str]:
        yield "half"
        if call.text == "fail":
            raise ValueError("no")
        await asyncio.Event().wait()

    agent = agent_on(None, answer)
    for number in range(20):
        with pytest.raises(ValueError, match="no"):
            await say(agent, "fail", f"t{number}")
        late = {**given("late", f"t{number}"), "timeoutMs": 5}
        result = await run_agent_trigger(agent, "chat.message", late)
        assert result.finish_reason == "timeout"
        turn = asyncio.create_task(say(agent, "cancelled", f"t{number}"))
        await asyncio.sleep(0)
        turn.cancel()
        await asyncio.wait({turn})
        stream = stream_agent_trigger(agent, "chat.message", given("stopped", f"t{number}"))
        stream.stop()
        assert (await stream.result()).status == "interrupted"
    turns = agent.runtime()._turns
    assert isinstance(turns, MemoryAgentState)
    assert len(turns._store.tables.locks) == 0
    assert sum((await leftovers_of(agent)).values()) == 0
    await agent.aclose()


async def test_L127_a_thousand_providers_change_nothing_that_they_share(path: Path) -> None:
    gc.collect()
    before = (len(memory_store._stores), len(sqlite_worker._workers), threading.active_count())
    for number in range(1000):
        async with open_agent_state(f"memory:{number}") as state:
            await agent_on(state).conversation("t").append([])
        if number % 20 == 0:
            async with open_agent_state(f"file:{path}") as state:
                await agent_on(state).conversations().sessions()
    del state
    gc.collect()
    after = (len(memory_store._stores), len(sqlite_worker._workers), threading.active_count())
    assert after == before
