"""Shutdown: event loops that end, and agents that are closed, under turns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.conversation.scene import key_of, lock_of, rows_of
from tests.conversation.test_leases import dead_entry
from vitehub_chat import Agent, chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.model.results import RunResult
from vitehub_chat.state.stepped import SteppedAgentState

LIMIT_S = 20
STORES = pytest.mark.parametrize("store", ["memory", "file"], indirect=True)


def said(text: str, thread: str = "t") -> dict[str, Any]:
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"messages": [message], "run": {"threadId": thread}}


async def say(agent: Agent, text: str, thread: str = "t") -> RunResult:
    return await run_agent_trigger(agent, "chat.message", said(text, thread))


def agent_on(state: Any, driver: Callable[[DriverCall], Any], **options: Any) -> Agent:
    return define_agent(name="station", driver=driver, capabilities=[chat(options)], state=state)


async def left_in(state: SteppedAgentState, thread: str) -> list[str]:
    """Return what of a thread is neither stored nor over."""
    key, lock_key = key_of(thread).encode(), lock_of(thread)
    lock, entries = await state.run_read(
        lambda tx: (tx.locks.get(lock_key), tx.entries.open_in(key))
    )
    return [*(each.state for each in entries), *([] if lock is None else ["locked"])]


@STORES
@pytest.mark.parametrize(
    "strategy",
    [
        "serial",
        "queue",
        {"strategy": "debounce", "debounce_ms": 1},
        {"strategy": "parallel", "max_concurrent": 1},
    ],
    ids=str,
)
def test_a_loop_that_ends_at_any_moment_of_two_turns_leaves_nothing(
    store: str, strategy: Any
) -> None:
    moments = [*range(40), *range(40, 400, 40)]
    endings: set[tuple[str, ...]] = set()

    async def quick(_call: DriverCall) -> AsyncIterator[str]:
        yield "half"

    async def leave(agent: Agent, number: int) -> None:
        for text in "AB":
            asyncio.create_task(say(agent, text, f"t{number}"))  # noqa: RUF006 - left on purpose
        for _ in range(number):
            await asyncio.sleep(0)

    async def look(number: int) -> None:
        async with open_agent_state(store) as state:
            assert isinstance(state, SteppedAgentState)
            async with asyncio.timeout(30):
                while set(await left_in(state, f"t{number}")) == {"waiting"}:
                    # Taken by the other one in the moment in which its own caller left.
                    await agent.sweep()
                    await agent.runtime().settle(timedelta(seconds=30))
            assert await left_in(state, f"t{number}") == [], number
            endings.add(tuple(row.status for row in await rows_of(state, f"t{number}")))

    agent = agent_on(store, quick, concurrency=strategy)
    # One that is always open keeps a store in memory.
    asyncio.run(agent.open_state())
    for number in moments:
        asyncio.run(leave(agent, number))
        asyncio.run(look(number))
    asyncio.run(agent.aclose())
    assert () in endings
    assert {status for each in endings for status in each} <= {"complete", "interrupted"}


class Held:
    """A driver that says something and then waits, and tells that it does."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.has_begun = threading.Event()

    async def __call__(self, call: DriverCall) -> AsyncIterator[str]:
        self.calls.append(call.text)
        return self._answer()

    async def _answer(self) -> AsyncIterator[str]:
        yield "half"
        self.has_begun.set()
        await asyncio.Event().wait()


async def admit_dead(state: SteppedAgentState, text: str) -> None:
    """Let a message wait that nobody waits for."""
    await state.turns.admit(
        attrs.evolve(dead_entry(text), owner=None),
        policy=ConcurrencyPolicy(),
        lease=timedelta(microseconds=1),
        dedupe_ttl=timedelta(minutes=10),
    )


@STORES
def test_a_run_for_others_ends_recorded_with_its_loop_and_the_next_goes_on_waiting(
    store: str,
) -> None:
    driver = Held()
    agent = agent_on(store, driver)

    async def serve() -> None:
        state = await agent.open_state()
        assert isinstance(state, SteppedAgentState)
        for text in "XY":
            await admit_dead(state, text)
        assert await agent.sweep() == 1
        async with asyncio.timeout(LIMIT_S):
            while not driver.has_begun.is_set():  # noqa: ASYNC110 - the driver is in no loop
                await asyncio.sleep(0)

    async def look() -> None:
        async with open_agent_state(store) as state:
            assert isinstance(state, SteppedAgentState)
            rows = [(row.message.text, row.status) for row in await rows_of(state, "t")]
            assert rows == [("X", "complete"), ("half", "interrupted")]
            assert await left_in(state, "t") == ["waiting"]

    asyncio.run(serve())
    asyncio.run(look())
    assert driver.calls == ["X"]
    asyncio.run(agent.aclose())


@STORES
def test_closing_an_agent_ends_its_runs_for_others_and_leaves_the_next_waiting(
    store: str,
) -> None:
    driver = Held()

    async def main() -> None:
        async with open_agent_state(store) as state:
            assert isinstance(state, SteppedAgentState)
            agent = agent_on(state, driver)
            for text in "XY":
                await admit_dead(state, text)
            assert await agent.sweep() == 1
            async with asyncio.timeout(LIMIT_S):
                while not driver.has_begun.is_set():  # noqa: ASYNC110 - it is in no loop
                    await asyncio.sleep(0)
                await agent.aclose()
            rows = [(row.message.text, row.status) for row in await rows_of(state, "t")]
            assert rows == [("X", "complete"), ("half", "interrupted")]
            assert await left_in(state, "t") == ["waiting"]

    asyncio.run(main())
    assert driver.calls == ["X"]


@pytest.mark.parametrize("is_stored", [True, False])
def test_closing_an_agent_ends_and_records_the_turns_of_other_loops(
    tmp_path: Path,
    is_stored: bool,  # noqa: FBT001
) -> None:
    driver = Held()
    url = f"file:{tmp_path}/state.db" if is_stored else None
    agent = agent_on(url, driver)
    results: list[RunResult] = []

    async def call() -> None:
        async with asyncio.timeout(LIMIT_S):
            results.extend(await asyncio.gather(say(agent, "A"), say(agent, "B")))

    async def close() -> None:
        async with asyncio.timeout(LIMIT_S):
            await agent.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(call()))
    thread.start()
    assert driver.has_begun.wait(LIMIT_S)
    asyncio.run(close())
    thread.join(LIMIT_S)
    assert [result.status for result in results] == ["interrupted", "interrupted"]
    [text] = driver.calls

    async def look() -> None:
        async with open_agent_state(str(url)) as state:
            assert isinstance(state, SteppedAgentState)
            rows = [(row.message.text, row.status) for row in await rows_of(state, "t")]
            assert rows == [(text, "complete"), ("half", "interrupted")]
            assert await left_in(state, "t") == []

    if is_stored:
        asyncio.run(look())


def test_closing_an_agent_does_not_wait_for_loops_that_stand_still() -> None:
    driver = Held()
    agent = agent_on(None, driver)
    loop = asyncio.new_event_loop()
    turn = loop.create_task(say(agent, "A"))
    while not driver.has_begun.is_set():
        loop.run_until_complete(asyncio.sleep(0, loop))

    async def close() -> None:
        async with asyncio.timeout(LIMIT_S):
            await agent.aclose()

    asyncio.run(close())
    turn.cancel()
    loop.run_until_complete(asyncio.wait({turn}))
    loop.close()
