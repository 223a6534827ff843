"""Benchmark of a remote libSQL server: requests, and their time against a raw client.

Run it with `uv run --all-extras python tests/benchmarks/remote.py`; it takes some minutes.

The server is a real one, on the loopback, and for the second half a proxy lets every request
arrive 10 ms later. The raw client sends the same SQL in one transaction per request and does
nothing else. A turn is a message and its answer, appended together, to a thread of 10,000.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import attrs

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, too

from tests.benchmarks.hrana import HranaFloor
from tests.benchmarks.measuring import (
    Count,
    Figure,
    Rounds,
    Subject,
    freeze,
    read_options,
    report,
)
from tests.benchmarks.proxy import Proxy
from tests.benchmarks.scenes import PLAIN, Turns, appending, fill, loading, together
from tests.providers.sqld_server import SqldServer, find_sqld
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.opening import open_agent_state

TASKS = 16
DELAY = 0.01


@attrs.frozen(kw_only=True)
class Scale:
    """How much is measured."""

    length: int = 10_000
    rounds: int = 200
    many_rounds: int = 20
    times: int = 5


TINY = Scale(length=30, rounds=3, many_rounds=2, times=2)


async def main() -> None:
    """Measure and report."""
    options = read_options("a remote libSQL server")
    scale = TINY if options.is_tiny else Scale()
    with tempfile.TemporaryDirectory() as folder:
        server = SqldServer(find_sqld(Path(folder)), Path(folder) / "server")
        server.start()
        try:
            async with AsyncExitStack() as stack:
                bench = _Bench(stack, server, scale)
                await bench.fill()
                figures = await bench.measure_near()
                figures += await bench.measure_far()
                counts = await bench.count()
        finally:
            server.kill()
    report(options, figures, counts, {})


class _Bench:
    """A thread of messages on a server, and the same for the floor."""

    def __init__(self, stack: AsyncExitStack, server: SqldServer, scale: Scale) -> None:
        self._stack = stack
        self._server = server
        self._scale = scale
        self._turns = Turns("turn")

    async def fill(self) -> None:
        """Store the messages."""
        async with open_agent_state(self._server.url) as state:
            await fill(state, self._scale.length, key=PLAIN, has_sessions=False)
        async with aiohttp.ClientSession() as http:
            await HranaFloor(http, self._server.url).fill(self._scale.length)

    async def measure_near(self) -> list[Figure]:
        """Measure on the loopback."""
        state, floor = await self._connect(self._server.url)
        alone = await self._measure_alone(state, floor, "loopback", 1.6)
        times, rounds = self._scale.times, self._scale.many_rounds
        what = f"append a turn in {TASKS} tasks with a thread each, loopback"
        against = "raw client appends one by one, loopback"
        keys = [ConversationKey(None, "benchmark", None, f"t{number}") for number in range(TASKS)]
        subjects = {
            what: together(times, *(appending(state, self._turns, key) for key in keys)),
            against: together(times, floor.append),
        }
        self._turns.make(TASKS * times * (rounds + 1))
        measured = await _measure(subjects, rounds, {what: TASKS * times, against: times})
        return [*alone, measured.rate(what, against, 4.5)]

    async def measure_far(self) -> list[Figure]:
        """Measure with a longer way to the server."""
        proxy = await self._proxy(DELAY)
        state, floor = await self._connect(f"http://127.0.0.1:{proxy.port}")
        return await self._measure_alone(state, floor, "10 ms away", 1.1)

    async def count(self) -> list[Count]:
        """Count the requests of calls in a conversation that the process knows."""
        proxy = await self._proxy(0)
        state, _ = await self._connect(f"http://127.0.0.1:{proxy.port}")
        counts = []
        self._turns.make(5)
        for what, call in (
            ("append", appending(state, self._turns)),
            ("window", loading(state)),
        ):
            taken = [await _exchanges_of(proxy, call) for _ in range(5)]
            counts.append(Count(what=f"requests of one {what}", count=taken[-1], goal=1))
        return counts

    async def _measure_alone(
        self, state: AgentState, floor: HranaFloor, where: str, goal: float
    ) -> list[Figure]:
        append, load = f"append a turn, {where}", f"load the newest 20, {where}"
        raw_append, raw_load = f"raw client appends, {where}", f"raw client loads, {where}"
        subjects: dict[str, Subject] = {
            append: appending(state, self._turns),
            raw_append: floor.append,
            load: loading(state),
            raw_load: floor.load,
        }
        self._turns.make(self._scale.rounds + 1)
        measured = await _measure(subjects, self._scale.rounds)
        return [measured.figure(append, raw_append, goal), measured.figure(load, raw_load)]

    async def _connect(self, url: str) -> tuple[AgentState, HranaFloor]:
        state: AgentState = await self._stack.enter_async_context(open_agent_state(url))
        http = await self._stack.enter_async_context(aiohttp.ClientSession())
        floor = HranaFloor(http, url)
        await floor.go_on()
        return state, floor

    async def _proxy(self, delay: float) -> Proxy:
        proxy = Proxy("127.0.0.1", self._server.port, delay=delay)
        return await self._stack.enter_async_context(proxy.serving())


async def _exchanges_of(proxy: Proxy, call: Subject) -> int:
    before = proxy.exchanges
    await call()
    return proxy.exchanges - before


async def _measure(
    subjects: dict[str, Subject], rounds: int, sizes: dict[str, int] | None = None
) -> Rounds:
    freeze()
    measured = Rounds(time.perf_counter, collects=False)
    await measured.run(subjects, rounds, sizes or {})
    return measured


if __name__ == "__main__":
    asyncio.run(main())
