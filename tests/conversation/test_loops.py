"""Several event loops: one agent serves callers in three threads, and nothing of it stays."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conversation.station import SteppedDriver, leftovers_of
from vitehub_chat import Agent, chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.model.results import RunResult
from vitehub_chat.state.providers.memory import MemoryAgentState

LOOPS = 3
MESSAGES = 12


def said(text: str, thread: str) -> dict[str, Any]:
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"messages": [message], "run": {"threadId": thread}}


async def serve(agent: Agent, loop: int, ready: threading.Barrier) -> list[RunResult]:
    await asyncio.to_thread(ready.wait)
    turns = [
        run_agent_trigger(agent, "chat.message", said(f"{loop}-{n}", f"t{n % 2}"))
        for n in range(MESSAGES)
    ]
    async with asyncio.timeout(60):
        return await asyncio.gather(*turns)


def serve_in_threads(agent: Agent) -> list[RunResult]:
    ready = threading.Barrier(LOOPS)
    with ThreadPoolExecutor(LOOPS) as pool:
        found = pool.map(lambda loop: asyncio.run(serve(agent, loop, ready)), range(LOOPS))
        return [result for results in found for result in results]


def agent_with(strategy: object, state: Any = None) -> tuple[Agent, SteppedDriver]:
    driver = SteppedDriver(stops=False)
    capability = chat({"concurrency": strategy})
    agent = define_agent(name="station", driver=driver, capabilities=[capability], state=state)
    return agent, driver


@pytest.mark.parametrize(
    "strategy",
    [
        "serial",
        {"strategy": "queue", "max_queue_size": 100},
        "parallel",
        {"strategy": "parallel", "max_concurrent": 2},
    ],
)
@pytest.mark.parametrize("is_stored", [True, False])
def test_callers_of_three_loops_are_all_answered_once(
    strategy: Any,
    is_stored: bool,  # noqa: FBT001
) -> None:
    state = open_agent_state("memory:") if is_stored else None
    if state is not None:
        asyncio.run(state.__aenter__())
    agent, driver = agent_with(strategy, state)
    results = serve_in_threads(agent)
    statuses = Counter(result.status for result in results)
    assert set(statuses) <= {"complete", "coalesced"}
    assert sum(statuses.values()) == LOOPS * MESSAGES
    said_once = Counter(
        text
        for call in driver.calls
        for text in call.replace("[", ",").strip("]").split(",")
        if text
    )
    assert said_once == Counter(f"{i}-{n}" for i in range(LOOPS) for n in range(MESSAGES))
    assert statuses["complete"] == len(driver.calls)
    if strategy == {"strategy": "parallel", "max_concurrent": 2}:
        assert driver.most <= 4
    asyncio.run(check_nothing_is_left(agent))
    asyncio.run(agent.aclose())


async def answer_one(agent: Agent) -> None:
    await run_agent_trigger(agent, "chat.message", said("first", "t1"))


async def check_nothing_is_left(agent: Agent) -> None:
    assert sum((await leftovers_of(agent)).values()) == 0
    runtime = agent.runtime()
    state = runtime._state or runtime._turns
    assert isinstance(state, MemoryAgentState)
    tables = state._store.tables
    assert len(tables.locks) == 0
    assert {entry.state for entry in tables.entries._entries._records.values()} == {"ended"}
    if runtime._state is not None:
        for thread in ("t0", "t1"):
            rows = (await agent.conversation(thread).history(limit=100)).items
            assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
            assert len({row.message.id for row in rows}) == len(rows)


@pytest.mark.parametrize("strategy", ["drop", "reject"])
def test_refused_callers_of_three_loops_leave_nothing_behind(strategy: str) -> None:
    agent, driver = agent_with(strategy)
    asyncio.run(answer_one(agent))
    ready = threading.Barrier(LOOPS)

    async def serve_one(loop: int) -> Counter[str]:
        await asyncio.to_thread(ready.wait)
        turns = [
            run_agent_trigger(agent, "chat.message", said(f"{loop}-{n}", "t0"))
            for n in range(MESSAGES)
        ]
        found = await asyncio.gather(*turns, return_exceptions=True)
        return Counter(
            each.status if isinstance(each, RunResult) else type(each).__name__ for each in found
        )

    with ThreadPoolExecutor(LOOPS) as pool:
        counts: Counter[str] = sum(
            pool.map(lambda loop: asyncio.run(serve_one(loop)), range(LOOPS)), Counter()
        )
    refused = "dropped" if strategy == "drop" else "ChatBusyError"
    assert set(counts) == {"complete", refused}
    assert counts["complete"] + 1 == len(driver.calls)
    assert counts.total() == LOOPS * MESSAGES
    asyncio.run(check_nothing_is_left(agent))
    asyncio.run(agent.aclose())
