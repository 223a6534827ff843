"""Cancelling and stopping at every moment: all or nothing is stored, and nothing stays behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.conversation.scene import Scene, check_free, lock_of, rows_of
from tests.conversation.station import LIMIT_S, Ended, LocalSite, Station, leftovers_of
from tests.conversation.steps import Steps, counted_steps
from vitehub_chat import (
    Agent,
    chat,
    define_agent,
    open_agent_state,
    run_agent_trigger,
    stream_agent_trigger,
)
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.model.events import ToolCall, ToolResult
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.testing.clock import FakeClock

STORES = pytest.mark.parametrize("store", ["memory", "file"], indirect=True)
MOST = 2000
"""More steps than any of these turns has."""

Stored = tuple[tuple[str, str], ...]
USER = ("user", "complete")
ALLOWED: Mapping[str, set[Stored]] = {
    "cancelled": {
        (),
        (USER, ("assistant", "interrupted")),
        (USER, ("assistant", "complete")),
    },
    "interrupted": {(), (USER, ("assistant", "interrupted"))},
    "complete": {(USER, ("assistant", "complete"))},
}


def said(text: str, thread: str, **more: Any) -> dict[str, Any]:
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"messages": [message], "run": {"threadId": thread}, **more}


async def answer(call: DriverCall) -> AsyncIterator[Any]:
    yield "half "
    yield ToolCall("c1", "look")
    yield ToolResult("c1", "look", "seen")
    yield f"of {call.text}"


async def leave(agent: Agent, way: str, thread: str, steps: Steps, number: int) -> str:
    """Run a turn, leave it after so many steps, and return how it ended."""
    given = said("A", thread)
    if way == "stop":
        stream = stream_agent_trigger(agent, "chat.message", given)
        task = asyncio.create_task(stream.result())
        steps.arm(number, stream.stop)
    else:
        task = asyncio.create_task(run_agent_trigger(agent, "chat.message", given))
        steps.arm(number, task.cancel)
    try:
        async with asyncio.timeout(LIMIT_S):
            return (await task).status
    except asyncio.CancelledError:
        assert task.cancelled()
        return "cancelled"


@STORES
@pytest.mark.parametrize("way", ["cancel", "stop"])
async def test_a_turn_that_is_left_at_any_moment_is_stored_whole_or_not_at_all(
    store: str, way: str
) -> None:
    seen: set[Stored] = set()
    async with open_agent_state(store, clock=FakeClock()) as state:
        assert isinstance(state, SteppedAgentState)
        capability = chat(trigger_history={"source": "transcript", "max_messages": 5})
        agent = define_agent(name="station", driver=answer, capabilities=[capability], state=state)
        with counted_steps() as steps:
            for number in range(MOST):
                thread = f"t{number}"
                end = await leave(agent, way, thread, steps, number)
                is_over = steps.disarm()
                rows = tuple((r.message.role, r.status) for r in await rows_of(state, thread))
                assert rows in ALLOWED[end], (number, end, rows)
                seen.add(rows)
                again = await run_agent_trigger(agent, "chat.message", said("again", thread))
                assert (again.status, again.text) == ("complete", "half of again")
                left = await leftovers_of(agent)
                assert sum(left.values()) == 0, (number, left)
                await check_free(state, thread)
                if is_over:
                    break
        assert steps.problems == []
        await agent.aclose()
    assert number > 12
    assert seen == ALLOWED["cancelled"]


@STORES
async def test_a_turn_that_is_cancelled_again_and_again_still_records_its_end(store: str) -> None:
    async with open_agent_state(store, clock=FakeClock()) as state:
        assert isinstance(state, SteppedAgentState)
        agent = define_agent(name="station", driver=answer, capabilities=[chat()], state=state)
        with counted_steps() as steps:
            for number in range(MOST):
                thread = f"t{number}"
                task = asyncio.create_task(
                    run_agent_trigger(agent, "chat.message", said("A", thread))
                )

                def cancel_from_now_on(task: asyncio.Task[Any] = task) -> None:
                    task.cancel()
                    steps.arm(1, cancel_from_now_on)

                steps.arm(number, cancel_from_now_on)
                await asyncio.wait({task})
                is_over = steps.disarm() and not task.cancelled()
                rows = tuple((r.message.role, r.status) for r in await rows_of(state, thread))
                assert rows in ALLOWED["cancelled"], (number, rows)
                assert sum((await leftovers_of(agent)).values()) == 0
                await check_free(state, thread)
                if is_over:
                    break
        assert steps.problems == []
        await agent.aclose()
    assert number > 12


@asynccontextmanager
async def open_scene(url: str, **options: Any) -> AsyncIterator[Scene]:
    clock = FakeClock()
    station = Station(options, clock)
    await station.open(url)
    async with open_agent_state(url, clock=clock) as state:
        assert isinstance(state, SteppedAgentState)
        site = LocalSite(station)
        yield Scene(site, site, state, clock)
    await station.close()


@STORES
@pytest.mark.parametrize("way", ["cancel", "stop"])
@pytest.mark.parametrize("left", ["B", "D"])
async def test_who_leaves_a_queue_at_any_moment_takes_nobody_elses_message_along(
    store: str, way: str, left: str
) -> None:
    """A runs; B, C and D wait for one run; B or D is left at any moment from A's end on."""
    stay = [name for name in "BCD" if name != left]
    async with open_scene(store, concurrency="queue") as scene:
        site = scene.first
        assert isinstance(site, LocalSite)
        with counted_steps() as steps:
            for number in range(MOST):
                thread = f"t{number}"
                ends = await leave_queue(scene, site.station, thread, left, way, number, steps)
                is_over = steps.disarm()
                assert ends["A"] == "complete A[]"
                assert {ends[name].split()[0] for name in stay} <= {"complete", "coalesced"}, ends
                texts = await scene.texts(thread)
                assert texts[:2] == ["A", "A[]"]
                assert [texts.count(name) for name in stay] == [1, 1], (number, texts)
                assert len(set(texts)) == len(texts), (number, texts)
                await scene.check_nothing_is_left(thread)
                if is_over:
                    break
        assert steps.problems == []
    assert number > 12


async def leave_queue(
    scene: Scene, station: Station, thread: str, left: str, way: str, number: int, steps: Steps
) -> Mapping[str, str]:
    """Return how all four ended when one of them is left after so many steps."""
    site, lock_key = scene.first, lock_of(thread)
    keys = {name: f"{name}-{thread}" for name in "ABCD"}
    tasks = {"A": site.send("A", key=keys["A"], thread=thread)}
    station.driver.go_on("A").clear()
    station.driver.begun("A").clear()
    await site.begun("A")
    for name in "BCD":
        tasks[name] = await scene.enqueue(
            site, name, key=keys[name], thread=thread, lock_key=lock_key
        )
    key = keys[left]
    action = station._streams[key].stop if way == "stop" else station._tasks[key].cancel
    await site.release(*"ABCD")
    steps.arm(number, action)
    async with asyncio.timeout(LIMIT_S):
        ends = await asyncio.gather(*tasks.values(), return_exceptions=True)
    shown = [end.short if isinstance(end, Ended) else "cancelled" for end in ends]
    return dict(zip(tasks, shown, strict=True))
