"""kill -9 at any moment of a turn: nothing acknowledged is lost or doubled, and it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.children import Children, Counting, Told, agent_on, at_point, points_of
from tests.faults.worker import POINTS, Ahead, said
from vitehub_chat import open_agent_state, run_agent_trigger
from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.model.rows import Row

LEASE_S = 31
RANDOM_KILLS = 30
THREADS = ("x", "y")

Moment = Callable[[list[Told]], bool]


def moments() -> list[tuple[str | None, Moment]]:
    """Return every point, and then moments that fall anywhere."""
    exactly: list[tuple[str | None, Moment]] = [(point, at_point(point)) for point in POINTS]
    lines = [(7919 * number) % 61 + 1 for number in range(RANDOM_KILLS)]
    return exactly + [(None, lambda told, line=line: len(told) >= line) for line in lines]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_kills_at_every_point_and_anywhere_lose_and_double_nothing(
    children: Children, tmp_path: Path
) -> None:
    url = f"file:{tmp_path}/state.db"
    everything: dict[str, list[str]] = {}
    for number, (hold, is_moment) in enumerate(moments()):
        threads = {f"{t}{number}": [f"{t}{number}-{n}" for n in range(3)] for t in THREADS}
        told = await asyncio.to_thread(
            children.kill_at,
            is_moment,
            url=url,
            ahead_s=number * LEASE_S,
            threads=threads,
            hold=hold,
        )
        await check_after(url, (number + 1) * LEASE_S, threads, told)
        everything |= threads
    async with open_agent_state(url, clock=Ahead(len(everything) * LEASE_S)) as state:
        agent = agent_on(state, Counting())
        for thread, texts in everything.items():
            check_rows(await stored(agent, thread), texts)
        await agent.aclose()
    assert len(everything) == len(THREADS) * (len(POINTS) + RANDOM_KILLS)


async def check_after(
    url: str, ahead_s: float, threads: dict[str, list[str]], told: list[Told]
) -> None:
    """Check what a killed child left, and that everything goes on when its leases are over."""
    answered, driven = points_of(told, "answered"), points_of(told, "driving")
    driver = Counting()
    async with open_agent_state(url, clock=Ahead(ahead_s)) as state:
        agent = agent_on(state, driver)
        for thread, texts in threads.items():
            rows = await stored(agent, thread)
            for text in set(texts) & answered.keys():
                assert answered[text] == ["complete", f"re {text}"]
                assert texts_after(rows, text) == [text, f"re {text}"], told
            for text in set(texts) & driven.keys():
                assert texts_after(rows, text)[:1] == [text], told
            result = await run_agent_trigger(
                agent, "chat.message", said(f"next {texts[0]}", thread)
            )
            assert (result.status, result.text) == ("complete", f"re next {texts[0]}")
            for text in texts:
                again = await run_agent_trigger(agent, "chat.message", said(text, thread))
                assert (again.status, again.text) == ("complete", f"re {text}"), told
            called = [text for text in driver.calls if text in texts]
            assert len(set(called)) == len(called)
            assert not set(called) & answered.keys()
            check_rows(await stored(agent, thread), texts)
        await agent.aclose()


async def stored(agent: Agent, thread: str) -> list[Row]:
    rows: list[Row] = []
    cursor = None
    while True:
        page = await agent.conversation(thread).history(limit=100, cursor=cursor)
        rows = [*page.items, *rows]
        cursor = page.older_cursor
        if cursor is None:
            return rows


def texts_after(rows: list[Row], text: str) -> list[str]:
    """Return the row of a message and the one behind it."""
    found = [index for index, row in enumerate(rows) if row.message.id == text]
    return [row.message.text for index in found for row in rows[index : index + 2]]


def check_rows(rows: list[Row], texts: list[str]) -> None:
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    ids = [row.message.id for row in rows]
    assert len(set(ids)) == len(ids)
    assert set(texts) <= set(ids)
    assert {row.status for row in rows} <= {"complete", "interrupted"}
    for text in texts:
        assert [row.message.text for row in rows].count(f"re {text}") == 1


async def test_C31_messages_that_waited_for_a_killed_process_are_run_in_order_by_the_next(
    children: Children, tmp_path: Path
) -> None:
    url = f"file:{tmp_path}/state.db"
    told = await asyncio.to_thread(
        children.kill_at,
        lambda told: (
            [each[0] for each in told].count("admitted") == 4
            and "driving" in [each[0] for each in told]
        ),
        url=url,
        ahead_s=0,
        threads={"x": ["A", "B", "C", "D"]},
        hold=None,
        tools=10_000,
        together=True,
    )
    assert not points_of(told, "answered")
    driver = Counting()
    async with open_agent_state(url, clock=Ahead(LEASE_S)) as state:
        agent = agent_on(state, driver)
        result = await run_agent_trigger(agent, "chat.message", said("E", "x"))
        assert result.text == "re E"
        assert driver.calls == ["B", "C", "D", "E"]
        rows = await stored(agent, "x")
        texts = [(row.message.text, row.status) for row in rows if row.message.role == "user"]
        assert texts == [(text, "complete") for text in "ABCDE"]
        assert [row.message.text for row in rows if row.message.role == "assistant"][-4:] == [
            "re B",
            "re C",
            "re D",
            "re E",
        ]
        await agent.aclose()


async def test_C31_messages_that_waited_for_a_killed_process_are_run_in_order_by_a_sweep(
    children: Children, tmp_path: Path
) -> None:
    url = f"file:{tmp_path}/state.db"
    await asyncio.to_thread(
        children.kill_at,
        lambda told: (
            [each[0] for each in told].count("admitted") == 4
            and "driving" in [each[0] for each in told]
        ),
        url=url,
        ahead_s=0,
        threads={"x": ["A", "B", "C", "D"]},
        hold=None,
        tools=10_000,
        together=True,
    )
    driver = Counting()
    async with open_agent_state(url, clock=Ahead(LEASE_S)) as state:
        agent = agent_on(state, driver)
        assert await agent.sweep() == 1
        async with asyncio.timeout(20):
            while len(driver.calls) < 3:  # noqa: ASYNC110 - a store tells nobody
                await asyncio.sleep(0)
            # A repeat gets the end of the last one once it is recorded.
            await run_agent_trigger(agent, "chat.message", said("D", "x"))
        assert driver.calls == ["B", "C", "D"]
        await agent.aclose()


@pytest.mark.parametrize("point", ["noted", "speaking", "recorded"])
async def test_the_next_turn_after_a_killed_one_sees_what_was_said(
    children: Children, tmp_path: Path, point: str
) -> None:
    url = f"file:{tmp_path}/state.db"
    await asyncio.to_thread(
        children.kill_at,
        at_point(point),
        url=url,
        ahead_s=0,
        threads={"x": ["A"]},
        hold=point,
    )
    seen: list[list[str]] = []

    class Looking(Counting):
        def __call__(self, call: DriverCall) -> str:
            seen.append([message.text for message in call.messages])
            return "fine"

    async with open_agent_state(url, clock=Ahead(LEASE_S)) as state:
        window = {"source": "transcript", "max_messages": 10}
        agent = agent_on(state, Looking(), trigger_history=window)
        await run_agent_trigger(agent, "chat.message", said("B", "x"))
        rows = await stored(agent, "x")
        await agent.aclose()
    assert seen == [["A", "re ", "B"] if point == "noted" else ["A", "B"]]
    statuses = [row.status for row in rows]
    kept = ["complete", "interrupted"] if point == "noted" else ["complete"]
    assert statuses == [*kept, "complete", "complete"]
