"""Benchmark of windows: read again with and without what is kept of them, and by what is stored.

Run it with `uv run --all-extras python tests/benchmarks/windows.py`; it takes some minutes.

Without what is kept means that it is thrown away before every read, in the same run. On a remote
store a window comes with the write of its turn, so whole turns are compared there.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import attrs

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, too

from tests.benchmarks.measuring import (
    Figure,
    Rounds,
    Subject,
    freeze,
    read_options,
    report,
)
from tests.benchmarks.scenes import PLAIN, WINDOW, fill, loading
from tests.providers.sqld_server import SqldServer, find_sqld
from vitehub_chat.state.opening import open_agent_state
from vitehub_chat.state.steps.reading import window_of
from vitehub_chat.state.values import PageRequest, WindowRequest
from vitehub_chat.testing.checks.lines import new_line

NEWEST = WindowRequest(limit=WINDOW)
LATER = 1 << 60

AGAIN = "window of 20 again, file:"
ASKED = "the same, asked anew"
DECODED = "the same, asked and decoded anew"
IN_TURN = "window of 20 under the lock of a turn, file:"
TURN = "turn with a window of 20, remote"


@attrs.frozen(kw_only=True)
class Scale:
    """How much is measured."""

    length: int = 10_000
    lengths: tuple[int, int] = (1_000, 50_000)
    rounds: int = 300
    remote_rounds: int = 100


TINY = Scale(length=40, lengths=(40, 80), rounds=3, remote_rounds=3)


async def main() -> None:
    """Measure and report."""
    options = read_options("windows that are read again")
    scale = TINY if options.is_tiny else Scale()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            figures += await measure_file(stack, Path(folder), scale)
            figures += await measure_lengths(stack, Path(folder), scale)
            figures += await measure_remote(stack, Path(folder), scale)
    report(options, figures, [], {})


async def measure_file(stack: AsyncExitStack, folder: Path, scale: Scale) -> list[Figure]:
    """Compare windows in a file with the same ones without what is kept."""
    state = await _open(stack, f"file:{folder}/again.db", scale.length)
    load, kept = _after_others(loading(state)), state._opening.kept
    subjects = {
        AGAIN: load,
        ASKED: _without(kept.recall.clear, load),
        DECODED: _without(kept.clear, load),
    }
    measured = await _measure(subjects, scale.rounds)
    figures = [measured.figure(AGAIN, other, goal=1) for other in (ASKED, DECODED)]
    inside = {
        IN_TURN: _inside(state, lambda: None),
        ASKED: _inside(state, kept.tails.clear),
        DECODED: _inside(state, kept.clear),
    }
    measured = await _measure(inside, scale.rounds)
    return figures + [measured.figure(IN_TURN, other, goal=1) for other in (ASKED, DECODED)]


async def measure_lengths(stack: AsyncExitStack, folder: Path, scale: Scale) -> list[Figure]:
    """Compare reads near the end of a long history with those of a short one."""
    subjects: dict[str, dict[str, Subject]] = {}
    for length in scale.lengths:
        state = await _open(stack, f"file:{folder}/{length}.db", length)
        around = PageRequest(limit=WINDOW, around=f"m{length - WINDOW}")
        newest = PageRequest(limit=WINDOW)
        for what, call in (
            ("newest 20", _without(state._opening.kept.recall.clear, loading(state))),
            ("newest page of 20", _paging(state, newest)),
            ("20 around a message near the end", _paging(state, around)),
            ("rows behind an anchor near the end", _behind_anchor(state, length)),
        ):
            subjects.setdefault(what, {})[f"{what}, {length:,} rows"] = await call_of(call)
    figures = []
    for pair in subjects.values():
        measured = await _measure(pair, scale.rounds)
        short, long = pair
        figures.append(measured.figure(long, short, goal=1.2))
    return figures


async def call_of(subject: Subject) -> Subject:
    """Return a subject that has run once."""
    await subject()
    return subject


async def measure_remote(stack: AsyncExitStack, folder: Path, scale: Scale) -> list[Figure]:
    """Compare turns on a server with turns of a process that looks first."""
    server = SqldServer(find_sqld(folder), folder / "server")
    server.start()
    stack.callback(server.kill)
    state: Any = await stack.enter_async_context(open_agent_state(server.url))
    line = new_line(state)
    await fill(state, scale.length, key=line.key, has_sessions=False)
    numbers = itertools.count()

    def turning(before: Callable[[], object]) -> Subject:
        async def turn() -> object:
            name = f"turn {next(numbers)}"
            grant = await line.start(name)
            before()
            recorded = await line.record(grant, window=NEWEST)
            await line.finish(grant)
            return recorded

        return turn

    subjects = {
        TURN: turning(lambda: None),
        ASKED: turning(state._engine.shop.cache.clear),
    }
    measured = await _measure(subjects, scale.remote_rounds)
    return [measured.figure(TURN, ASKED, goal=1)]


async def _open(stack: AsyncExitStack, url: str, length: int) -> Any:
    state = await stack.enter_async_context(open_agent_state(url, durability="normal"))
    await fill(state, length, key=PLAIN, has_sessions=False)
    return state


def _without(forget: Callable[[], object], load: Subject) -> Subject:
    async def run() -> object:
        forget()
        return await load()

    return run


def _after_others(load: Subject) -> Subject:
    """Return what lets the loop turn first: few windows are read on it before it goes on."""

    async def run() -> object:
        await asyncio.sleep(0)
        return await load()

    return run


def _inside(state: Any, forget: Callable[[], object]) -> Subject:
    def step(tx: Any) -> object:
        forget()
        return window_of(tx, PLAIN, None, NEWEST, LATER)

    return lambda: state.run_write(step)


def _paging(state: Any, request: PageRequest) -> Subject:
    return lambda: state.transcripts.page(PLAIN, request=request)


def _behind_anchor(state: Any, length: int) -> Subject:
    wanted = WindowRequest(limit=500, from_anchor=True)

    async def load() -> object:
        since = await state.summaries.get_rolling(PLAIN, session_id=None)
        if since.anchor == 1:
            await state.summaries.commit_roll(
                PLAIN, session_id=None, since=since, summary="so far", anchor=length - WINDOW
            )
        return await state.transcripts.window(PLAIN, session=None, window=wanted)

    return load


async def _measure(subjects: dict[str, Subject], rounds: int) -> Rounds:
    freeze()
    measured = Rounds(time.perf_counter, collects=False)
    await measured.run(subjects, rounds)
    return measured


if __name__ == "__main__":
    asyncio.run(main())
