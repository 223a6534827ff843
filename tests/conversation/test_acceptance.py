"""Acceptance: messages that nobody waits for, where something is in the way of their runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conversation.station import Station, leftovers_of
from tests.conversation.virtual_time import LoopClock, run_virtually
from vitehub_chat import Agent, chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.conversation.acceptance import Acceptance
from vitehub_chat.model.messages import Message
from vitehub_chat.model.requests import RunInfo, TurnRequest
from vitehub_chat.model.results import RunResult
from vitehub_chat.testing.clock import FakeClock

LIMITED = {"strategy": "parallel", "max_concurrent": 1}
LIMIT_S = 20


def said(text: str) -> TurnRequest:
    message = Message(text, "user", ({"type": "text", "text": text},))
    return TurnRequest(messages=(message,), run=RunInfo(thread_id="t"))


async def accept(station: Station, text: str) -> Acceptance:
    return await station.agent.runtime().accept(said(text))


async def rest(agent: Agent) -> None:
    """Wait until nothing runs for others, nor follows on it."""
    while (await leftovers_of(agent))["background"]:  # noqa: ASYNC110 - each may start the next
        await asyncio.sleep(0)


async def texts(station: Station) -> list[str]:
    page = await station.agent.conversation("t").history(limit=100)
    return [row.message.text for row in page.items]


@pytest.fixture
async def open_station() -> AsyncIterator[Any]:
    opened: list[Station] = []

    async def open_one(options: Any, *, stops: bool = False) -> Station:
        station = Station(options, FakeClock(), stops=stops)
        await station.open("memory:")
        opened.append(station)
        return station

    yield open_one
    for station in opened:
        await station.close()


class NoScopeError(Exception):
    """What a callable of the application raises."""


async def test_a_message_whose_scope_cannot_be_told_is_not_stored(open_station: Any) -> None:
    asked: list[str] = []

    def scope(_question: object) -> str:
        asked.append("scope")
        if len(asked) == 1:
            raise NoScopeError
        return "thread"

    station = await open_station({"concurrency": LIMITED, "lock_scope": scope})
    with pytest.raises(NoScopeError):
        await accept(station, "A")
    assert await texts(station) == []
    assert sum((await leftovers_of(station.agent)).values()) == 0
    assert await accept(station, "A") == Acceptance(verdict="accepted")
    await rest(station.agent)
    assert await texts(station) == ["A", "A[]"]
    assert await accept(station, "A") == Acceptance(verdict="repeat")
    assert sum((await leftovers_of(station.agent)).values()) == 0


async def test_accepted_messages_of_a_line_run_one_after_the_other(open_station: Any) -> None:
    station = await open_station({"concurrency": LIMITED})
    found = [await accept(station, text) for text in "ABC"]
    assert found == [Acceptance(verdict="accepted")] * 3
    await rest(station.agent)
    assert station.driver.calls == ["A[]", "B[]", "C[]"]
    assert station.driver.most == 1
    assert sum((await leftovers_of(station.agent)).values()) == 0


@pytest.mark.parametrize("strategy", ["serial", "queue", LIMITED, "parallel"])
async def test_a_message_that_is_accepted_while_its_agent_closes_is_left_to_others(
    open_station: Any, strategy: object
) -> None:
    station = await open_station({"concurrency": strategy})
    await station.agent.runtime().desk()
    station.agent.runtime()._engine.close()
    assert await accept(station, "A") == Acceptance(verdict="accepted")
    await rest(station.agent)
    assert station.driver.calls == []


def test_looking_after_a_message_adds_up_nothing() -> None:
    async def answer(call: DriverCall) -> str:
        await asyncio.sleep(60)
        return f"re {call.text}"

    async def main() -> None:
        async with open_agent_state("memory:", clock=LoopClock()) as state:
            debounce = chat(concurrency={"strategy": "debounce", "debounce_ms": 10})
            agent = define_agent(name="a", driver=answer, capabilities=[debounce], state=state)
            # Made in a thread, during which the time of this loop would run away.
            await agent.runtime()._open_driver()
            await agent.runtime().accept(said("A"))
            await asyncio.sleep(10)
            await agent.runtime().accept(said("B"))
            # It is looked after four times a second.
            await asyncio.sleep(40)
            assert len(listeners_of(agent)) == 2
            assert max(listeners_of(agent)) < 10
            await rest(agent)
            page = await agent.conversation("t").history(limit=100)
            assert [row.message.text for row in page.items] == ["A", "re A", "B", "re B"]
            await agent.aclose()

    run_virtually(main())


def listeners_of(agent: Agent) -> list[int]:
    """Count what the switches of the runs in the background would wake."""
    engine: Any = agent.runtime()._engine
    return sorted(len(control._listeners) for _, control in engine._background)


def say(agent: Agent, text: str) -> asyncio.Task[RunResult]:
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    given = {"messages": [message], "run": {"threadId": "t"}}
    return asyncio.create_task(run_agent_trigger(agent, "chat.message", given))


@pytest.mark.parametrize(("messages", "told"), [("A", []), ("AB", [2]), ("ABC", [3])])
async def test_a_line_that_is_empty_after_several_turns_is_told_once(
    open_station: Any, caplog: pytest.LogCaptureFixture, messages: str, told: list[int]
) -> None:
    caplog.set_level(logging.INFO, "vitehub_chat")
    station = await open_station({"concurrency": "serial"}, stops=True)
    async with asyncio.timeout(LIMIT_S):
        running = [say(station.agent, "A")]
        await station.driver.begun("A").wait()
        for text in messages[1:]:
            assert await accept(station, text) == Acceptance(verdict="accepted")
        for text in messages:
            station.driver.go_on(text).set()
        await asyncio.gather(*running)
        await rest(station.agent)
    drained = [each for each in caplog.records if each.getMessage() == "chat.queue.drained"]
    assert [vars(record)["turns"] for record in drained] == told
    assert station.driver.calls == [f"{text}[]" for text in messages]
    assert len(station.agent.runtime()._engine._drains) == 0
