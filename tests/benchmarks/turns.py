"""Benchmark of whole turns: against the SQL that they need, and against a peer.

Run it with `uv run python tests/benchmarks/turns.py`, with the peer beside it with
`uv run --no-default-groups --group benchmarks python tests/benchmarks/turns.py`.

Every thread has 10,000 messages. A turn is admitted, recorded, given its window of 20, answered by
the echo driver, and its answer recorded. The peer loads 20 items and appends the message and then
the answer, as its runner does; it has neither lock nor claim. Full durability is `synchronous=FULL`
in write-ahead mode, for the floor, the peer and the state alike.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, too

from tests.benchmarks.counting import count_work
from tests.benchmarks.floors import Floor
from tests.benchmarks.measuring import (
    Count,
    Figure,
    Rounds,
    Subject,
    freeze,
    read_options,
    report,
)
from tests.benchmarks.scenes import KEY, WINDOW, fill, make_agent, make_message
from vitehub_chat import (
    Agent,
    open_agent_state,
    run_agent,
    run_agent_trigger,
)

PEER = "openai-agents"

TURN = "turn on file:, full durability"


async def main() -> None:
    """Measure and report."""
    options = read_options("whole turns")
    length, rounds = (30, 3) if options.is_tiny else (10_000, 300)
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            bench = _Bench(stack, folder, length)
            figures = await bench.measure(rounds)
            counts = await bench.count()
    version = metadata.version(PEER) if _has_peer() else ""
    report(options, figures, counts, {PEER: version})


class _Bench:
    """Threads of one length on every state."""

    def __init__(self, stack: AsyncExitStack, folder: str, length: int) -> None:
        self._stack = stack
        self._folder = folder
        self._length = length
        self._numbers = itertools.count(length, 2)
        self._states: dict[str, Any] = {}

    async def measure(self, rounds: int) -> list[Figure]:
        """Measure all subjects in turn."""
        memory = await self._open("memory", "memory:")
        full = await self._open("full", self._url("full"))
        normal = await self._open("normal", self._url("normal"), durability="normal")
        floor, fast_floor = await self._floor("full"), await self._floor("normal")
        subjects: dict[str, Subject] = {
            "run_agent, nothing stored": lambda: run_agent(memory, "This is what was said."),
            "turn on memory:": self._turning(memory),
            TURN: self._turning(full),
            "turn on file:, normal durability": self._turning(normal),
            "its SQL inline, 3 commits": floor.turn_in_3_commits,
            "its SQL inline, 2 commits": floor.turn_in_2_commits,
            "its SQL inline, normal, 3 commits": fast_floor.turn_in_3_commits,
        }
        figures = [
            ("turn on memory:", "run_agent, nothing stored", None),
            (TURN, "its SQL inline, 3 commits", None),
            (TURN, "its SQL inline, 2 commits", None),
            (
                "turn on file:, normal durability",
                "its SQL inline, normal, 3 commits",
                None,
            ),
        ]
        if _has_peer():
            peer = f"{PEER}: load 20, append, append"
            subjects[peer] = await self._peer()
            figures.append((TURN, peer, None))
        freeze()
        measured = Rounds(time.perf_counter, collects=False)
        await measured.run(subjects, rounds)
        return [measured.figure(what, against, goal) for what, against, goal in figures]

    async def count(self) -> list[Count]:
        """Count what one uncontended turn does."""
        state = self._states["full"]
        turn = self._turning(make_agent("transcript", state=state))
        await turn()  # the first one also builds the driver
        work = await count_work(state, turn)
        return [
            Count(what="commits of one turn on file:", count=work.commits, goal=3),
            Count(what="trips to another thread of one turn on file:", count=work.trips, goal=4),
            Count(what="rows read by one turn on file:", count=work.rows),
        ]

    def _url(self, name: str) -> str:
        return f"file:{self._folder}/{name}.db"

    async def _open(self, name: str, url: str, **settings: Any) -> Agent:
        state: Any = await self._stack.enter_async_context(open_agent_state(url, **settings))
        self._states[name] = state
        await self._fill(state)
        return make_agent("transcript", state=state)

    async def _fill(self, state: Any) -> None:
        await fill(state, self._length)

    async def _floor(self, durability: str) -> Floor:
        url = self._url(f"floor-{durability}")
        async with open_agent_state(url) as state:
            await self._fill(state)
        floor = Floor(url, KEY.encode(), durability=durability)
        self._stack.callback(floor.close)
        return floor

    def _turning(self, agent: Agent) -> Subject:
        async def turn() -> object:
            index = next(self._numbers)
            given = {
                "messages": [make_message(f"turn-{index}", index)],
                "run": {"threadId": KEY.thread},
            }
            return await run_agent_trigger(agent, "chat.message", given)

        return turn

    async def _peer(self) -> Subject:
        opened: Any = import_module("agents").SQLiteSession("t", f"{self._folder}/peer.db")
        self._stack.callback(opened.close)
        items = [_item(index) for index in range(self._length)]
        await opened.add_items(items)

        async def turn() -> object:
            index = next(self._numbers)
            loaded = await opened.get_items(limit=WINDOW)
            await opened.add_items([_item(index)])
            await opened.add_items([_item(index + 1)])
            return loaded

        return turn


def _item(index: int) -> dict[str, str]:
    role = "assistant" if index % 2 else "user"
    return {"role": role, "content": f"This is what was said as number {index}."}


def _has_peer() -> bool:
    return importlib.util.find_spec("agents") is not None


if __name__ == "__main__":
    asyncio.run(main())
