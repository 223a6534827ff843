"""Benchmark of the SQLite file: single operations, many tasks, several processes, a large file.

Run it with `uv run python tests/benchmarks/files.py`; it takes some minutes.

The floor is the same SQL inline, on one connection, with the settings of the state. A turn is a
message and its answer, appended together, to a thread of 10,000. On the slow disk every wait for
the disk takes 2 ms longer; it needs a compiler, and without one its figure is left out.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import attrs

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, too

from tests.benchmarks import slow_disk
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
from tests.benchmarks.processes import Crew
from tests.benchmarks.scenes import PLAIN, Turns, appending, fill, in_turn, loading, together
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.opening import open_agent_state

TASKS = 16
PROCESSES = 4
SLOWER_US = 2000

APPEND = "append a turn, file:, {} durability"
LOAD = "load the newest 20, file:"
BOTH = "append a turn and load the newest 20, file:"
ITS_APPEND = "its SQL inline, {} durability"
ITS_LOAD = "its SQL inline, and json.loads"
ITS_BOTH = "its SQL inline, full durability, and json.loads"


@attrs.frozen(kw_only=True)
class Scale:
    """How much is measured."""

    length: int = 10_000
    copies: int = 99
    rounds: int = 300
    many_rounds: int = 20
    times: int = 10


TINY = Scale(length=30, copies=2, rounds=3, many_rounds=2, times=2)


async def main() -> None:
    """Measure and report."""
    options = read_options("the SQLite file")
    scale = TINY if options.is_tiny else Scale()
    figures: list[Figure] = []
    counts: list[Count] = []
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            bench = _Bench(stack, Path(folder), scale)
            if slow_disk.MARK in os.environ:
                figures = [await bench.measure_tasks("full", 8, "2 ms fsync")]
            else:
                figures += await bench.measure_alone()
                figures.append(await bench.measure_tasks("full", 2.2, "full durability"))
                figures.append(await bench.measure_tasks("normal", 0.85, "normal durability"))
                counts.append(await bench.count_stall())
                figures.append(await bench.measure_large_file())
                several, failed = await bench.measure_processes()
                figures.append(several)
                counts.append(failed)
                figures += _measure_slow_disk(Path(folder))
    report(options, figures, counts, {})


def _measure_slow_disk(folder: Path) -> list[Figure]:
    """Run this file again on a slow disk."""
    command = [sys.executable, __file__, "--json", *sys.argv[1:]]
    output = slow_disk.run_on_slow_disk(command, folder, SLOWER_US)
    found = [] if output is None else json.loads(output)["figures"]
    return [Figure(**{**each, "quartiles": tuple(each["quartiles"])}) for each in found]


class _Bench:
    """Threads of messages in files, and the same for the floor."""

    def __init__(self, stack: AsyncExitStack, folder: Path, scale: Scale) -> None:
        self._stack = stack
        self._folder = folder
        self._scale = scale
        self._turns = Turns("turn")

    async def measure_alone(self) -> list[Figure]:
        """Measure one task."""
        full, floor = await self._open("full")
        normal, normal_floor = await self._open("normal")
        append, load = appending(full, self._turns), loading(full)
        subjects: dict[str, Subject] = {
            APPEND.format("full"): append,
            ITS_APPEND.format("full"): floor.append,
            APPEND.format("normal"): appending(normal, self._turns),
            ITS_APPEND.format("normal"): normal_floor.append,
            LOAD: load,
            ITS_LOAD: floor.load,
            BOTH: in_turn(append, load),
            ITS_BOTH: in_turn(floor.append, floor.load),
        }
        self._turns.make(3 * (self._scale.rounds + 1))
        measured = await _measure(subjects, self._scale.rounds)
        return [
            measured.figure(APPEND.format("full"), ITS_APPEND.format("full"), 1.5),
            measured.figure(APPEND.format("normal"), ITS_APPEND.format("normal"), 4.5),
            measured.figure(LOAD, ITS_LOAD, 4),
            measured.figure(BOTH, ITS_BOTH, 1.5),
        ]

    async def measure_tasks(self, durability: str, goal: float, disk: str) -> Figure:
        """Measure what many tasks append, against the floor one after the other."""
        state, floor = await self._open(durability)
        times, rounds = self._scale.times, self._scale.many_rounds
        what, against = f"append a turn in {TASKS} tasks, {disk}", f"its SQL inline, {disk}"
        subjects = {
            what: together(times, *[appending(state, self._turns)] * TASKS),
            against: together(times, floor.append),
        }
        self._turns.make(TASKS * times * (rounds + 1))
        measured = await _measure(subjects, rounds, {what: TASKS * times, against: times})
        return measured.rate(what, against, goal)

    async def count_stall(self) -> Count:
        """Count how long many tasks keep the loop from something else."""
        state, _ = await self._open("full")
        times = 10 * self._scale.times
        self._turns.make(TASKS * times)
        turn = in_turn(appending(state, self._turns), loading(state))
        stall = await _longest_stall(together(times, *[turn] * TASKS))
        what = f"longest stall of the loop in microseconds, {TASKS} tasks"
        return Count(what=what, count=round(stall * 1e6), goal=5000, is_time=True)

    async def measure_large_file(self) -> Figure:
        """Compare a window of a thread among many with that of a thread alone."""
        scale = self._scale
        subjects: dict[str, Subject] = {}
        for copies in (0, scale.copies):
            state, _ = await self._open("full", copies=copies)
            rows = (copies + 1) * scale.length
            subjects[f"load the newest 20, {rows:,} rows in the file"] = loading(state)
        measured = await _measure(subjects, scale.rounds)
        alone, among = subjects
        return measured.figure(among, alone, 1.2)

    async def measure_processes(self) -> tuple[Figure, Count]:
        """Compare what several processes append to one file with what one does."""
        turns, rounds = 10 * self._scale.times, self._scale.many_rounds
        url = f"file:{self._folder}/processes.db"
        async with open_agent_state(url):
            crew = await Crew.start(url, PROCESSES, self._stack)
        what, against = f"append a turn in {PROCESSES} processes", "append a turn in one process"
        subjects = {
            what: crew.appending(PROCESSES, turns),
            against: crew.appending(1, turns),
        }
        measured = await _measure(subjects, rounds, {what: PROCESSES * turns, against: turns})
        failed = Count(what=f"errors of {PROCESSES} processes", count=crew.failed, goal=0)
        return measured.rate(what, against, 1.2), failed

    async def _open(self, durability: str, *, copies: int = 0) -> tuple[AgentState, Floor]:
        """Return a state with one thread, and a floor with the same; copies lie beside it."""
        number = len(list(self._folder.iterdir()))
        urls = [f"file:{self._folder}/{number}-{who}.db" for who in ("state", "floor")]
        for url in urls:
            async with open_agent_state(url) as filling:
                await fill(filling, self._scale.length, key=PLAIN, has_sessions=False)
        floors = [Floor(url, PLAIN.encode(), durability=durability) for url in urls]
        floors[0].copy_rows(copies)
        for floor in floors:
            self._stack.callback(floor.close)
        opening = open_agent_state(urls[0], durability=durability)
        return await self._stack.enter_async_context(opening), floors[1]


async def _measure(
    subjects: dict[str, Subject], rounds: int, sizes: dict[str, int] | None = None
) -> Rounds:
    freeze()
    measured = Rounds(time.perf_counter, collects=False)
    await measured.run(subjects, rounds, sizes or {})
    return measured


async def _longest_stall(subject: Subject) -> float:
    """Return how much too late the loop woke up at most, in seconds, while a subject ran."""
    pause, longest = 0.001, 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            begin = time.perf_counter()
            await asyncio.sleep(pause)
            longest = max(longest, time.perf_counter() - begin - pause)

    watching = asyncio.create_task(watch())
    await subject()
    watching.cancel()
    return longest


if __name__ == "__main__":
    asyncio.run(main())
