"""Two processes that serve one thread of one store: their turns are one line."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.children import Children, Counting, agent_on
from tests.faults.homes import KINDS, Home, new_home, open_home, options_of
from tests.faults.worker import Ahead, said
from vitehub_chat import run_agent_trigger
from vitehub_chat.conversation.conversation import Conversation
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import Row
from vitehub_chat.state.contract import AgentState

SCRIPT = Path(__file__).with_name("serial_process.py")
COUNT = 20
LEASE_S = 31


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """Give a store of this test alone."""
    return new_home(request.param, request, tmp_path)


@contextmanager
def process(home: Home, name: str, marks: Path, count: int) -> Iterator[subprocess.Popen[str]]:
    """Start a process that sends so many messages once it is told to go on."""
    arguments = [home.url, json.dumps(options_of(home)), name, str(marks), str(count)]
    started = subprocess.Popen(
        [sys.executable, "-W", "error", str(SCRIPT), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with started:
        yield started
    assert started.returncode == 0


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    print(file=process.stdin, flush=True)


async def rows_in(state: AgentState, channel: str | None, thread: str) -> tuple[Row, ...]:
    key = ConversationKey(None, "station", channel, thread)
    return (await Conversation(state, key).history(limit=100)).items


@pytest.mark.slow
@pytest.mark.parametrize("home", KINDS, indirect=True)
async def test_C30_forty_serial_turns_of_two_processes_do_not_overlap(
    home: Home, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    with process(home, "a", marks, COUNT) as first, process(home, "b", marks, COUNT) as second:
        both = (first, second)
        assert [line_of(each) for each in both] == ["ready", "ready"]
        for each in both:
            go_on(each)
        answers = [json.loads(line_of(each)) for each in both]
    for name, found in zip("ab", answers, strict=True):
        assert found == [["complete", f"re {name}{number}"] for number in range(COUNT)]

    lines = marks.read_text(encoding="utf-8").split()
    order = lines[1::4]
    assert lines == [word for text in order for word in ("begin", text, "end", text)]
    assert sorted(order) == sorted(f"{name}{number}" for name in "ab" for number in range(COUNT))
    if home.kind == "sqlite":
        # One connection, so that what a process sends at once arrives in its order.
        for name in "ab":
            mine = [text for text in order if text.startswith(name)]
            assert mine == [f"{name}{number}" for number in range(COUNT)]

    async with open_home(home) as state:
        rows = await rows_in(state, None, "t")
    assert [row.seq for row in rows] == list(range(1, 4 * COUNT + 1))
    assert [row.message.role for row in rows] == ["user", "assistant"] * (2 * COUNT)
    assert [row.message.text for row in rows] == [
        text for each in order for text in (each, f"re {each}")
    ]


@pytest.mark.parametrize("home", KINDS, indirect=True)
def test_C19_a_repeat_in_a_new_process_gets_the_recorded_answer(home: Home, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    for _ in range(2):
        with process(home, "a", marks, 1) as started:
            assert line_of(started) == "ready"
            go_on(started)
            assert json.loads(line_of(started)) == [["complete", "re a0"]]
    assert marks.read_text(encoding="utf-8").split() == ["begin", "a0", "end", "a0"]


async def leave_a_line(children: Children, home: Home) -> None:
    """Kill a process that runs a turn, while three messages wait for it."""

    def is_moment(told: list[list[str]]) -> bool:
        points = [each[0] for each in told]
        return points.count("admitted") == 4 and "driving" in points

    await asyncio.to_thread(
        children.kill_at,
        is_moment,
        url=home.url,
        options=options_of(home),
        ahead_s=0,
        threads={"x": ["A", "B", "C", "D"]},
        hold=None,
        tools=10_000,
        together=True,
    )


@pytest.mark.parametrize("by", ["arrival", "sweep"])
@pytest.mark.parametrize("home", KINDS[1:], indirect=True)
async def test_C31_the_line_of_a_killed_process_is_run_in_order_on_a_server(
    children: Children, home: Home, by: str
) -> None:
    await leave_a_line(children, home)
    driver = Counting()
    encoded = ConversationKey(None, "station", None, "x").encode()
    async with open_home(home, clock=Ahead(LEASE_S)) as state:
        left = await state.run_read(lambda tx: tx.entries.open_in(encoded))
        [lost] = [str(entry.claim_id) for entry in left if entry.state != "waiting"]
        waiting = [str(entry.claim_id) for entry in left if entry.state == "waiting"]
        assert sorted([lost, *waiting]) == ["A", "B", "C", "D"]
        agent = agent_on(state, driver)
        last = waiting[-1]
        if by == "sweep":
            assert await agent.sweep() == 1
        else:
            last = "E"
            waiting.append(last)
        # With a sweep it is a repeat, which gets the end of what runs or waits.
        result = await run_agent_trigger(agent, "chat.message", said(last, "x"))
        assert (result.status, result.text) == ("complete", f"re {last}")
        assert driver.calls == waiting
        rows = [row for row in await rows_in(state, None, "x") if row.message.role == "user"]
        assert [row.message.text for row in rows] == [lost, *waiting]
        assert await state.run_read(lambda tx: tx.entries.open_in(encoded)) == []
        await agent.aclose()
