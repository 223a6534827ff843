"""Benchmark of turns at the same time: what one costs a state, and what many get done.

Run it with `uv run --all-extras python tests/benchmarks/concurrency.py`.

One uncontended turn is counted where nothing else runs: the calls of the state's Protocols, the
transactions and trips to another thread on a file, and on servers, which are real ones on the
loopback, how often something is sent to them and its answer waited for. Each has a counter of its
own: calls are counted at the state, exchanges between its driver and the server. Then 64
conversations have turns in one file, all at once and one after another, with full durability.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, too

from tests.benchmarks.counting import count_calls, count_work
from tests.benchmarks.measuring import (
    Count,
    Figure,
    Rounds,
    freeze,
    read_options,
    report,
)
from tests.benchmarks.proxy import Proxy
from tests.benchmarks.scenes import Subject, make_agent, make_message
from tests.providers.postgres_server import find_programs, serving
from tests.providers.sqld_server import SqldServer, find_sqld
from vitehub_chat import Agent, run_agent_trigger
from vitehub_chat.state.opening import open_agent_state

CONVERSATIONS = 64


@attrs.frozen(kw_only=True)
class Scale:
    """How much is measured."""

    conversations: int = CONVERSATIONS
    rounds: int = 20
    turns: int = 3


TINY = Scale(conversations=4, rounds=2, turns=1)


async def main() -> None:
    """Measure and report."""
    options = read_options("turns at the same time")
    scale = TINY if options.is_tiny else Scale()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = [await measure_throughput(folder, scale)]
        counts = await count_on_file(folder)
        async with _libsql(folder) as port:
            counts += await count_on_server("libSQL", "http://127.0.0.1:{}", port)
        async with _postgres() as port:
            if port is not None:
                url = "postgresql://postgres@127.0.0.1:{}/postgres"
                counts += await count_on_server("PostgreSQL", url, port)
    report(options, figures, counts, {})


async def measure_throughput(folder: Path, scale: Scale) -> Figure:
    """Compare turns of many conversations at once with the same turns one after another."""
    async with open_agent_state(f"file:{folder}/throughput.db") as state:
        agent = make_agent("transcript", state=state)
        numbers = itertools.count()
        threads = [f"thread-{number}" for number in range(scale.conversations)]

        async def talk(thread: str) -> object:
            return [await _turn(agent, thread, next(numbers)) for _ in range(scale.turns)]

        async def at_once() -> object:
            return await asyncio.gather(*(talk(thread) for thread in threads))

        async def one_by_one() -> object:
            return [await talk(thread) for thread in threads]

        what = f"turns of {scale.conversations} conversations at once, file:"
        against = "the same turns one after another"
        freeze()
        measured = Rounds(time.perf_counter, collects=False)
        size = scale.conversations * scale.turns
        subjects: dict[str, Subject] = {what: at_once, against: one_by_one}
        await measured.run(subjects, scale.rounds, {what: size, against: size})
    return measured.rate(what, against, 2.2)


async def count_on_file(folder: Path) -> list[Count]:
    """Count what one turn does to a file."""
    state: Any
    async with open_agent_state(f"file:{folder}/counts.db") as state:
        work = await count_work(state, await _warm_turn(state))
    return [
        Count(what="calls of the state in one turn on file:", count=work.calls),
        Count(what="commits of one turn on file:", count=work.commits, goal=3),
        Count(what="trips to another thread of one turn on file:", count=work.trips, goal=4),
    ]


async def count_on_server(name: str, url: str, port: int) -> list[Count]:
    """Count how often one turn asks the state for something, and how often it waits for a server.

    Two turns are counted, so that neither counter sees what the other does.
    """
    state: Any
    proxy = Proxy("127.0.0.1", port)
    async with proxy.serving(), open_agent_state(url.format(proxy.port)) as state:
        turn = await _warm_turn(state)
        before = proxy.exchanges
        await turn()
        taken = proxy.exchanges - before
        calls = await count_calls(state, turn)
    return [
        Count(what=f"calls of the state in one turn on {name}", count=calls),
        Count(what=f"requests of one turn on {name}, window included", count=taken, goal=3),
    ]


async def _warm_turn(state: Any) -> Subject:
    """Return a turn in a conversation that had some already."""
    agent = make_agent("transcript", state=state)
    numbers = itertools.count()

    async def turn() -> object:
        return await _turn(agent, "thread", next(numbers))

    for _ in range(3):
        await turn()
    return turn


async def _turn(agent: Agent, thread: str, number: int) -> object:
    given = {
        "messages": [make_message(f"{thread}-{number}", 2 * number)],
        "run": {"threadId": thread},
    }
    return await run_agent_trigger(agent, "chat.message", given)


@asynccontextmanager
async def _libsql(folder: Path) -> AsyncIterator[int]:
    server = SqldServer(find_sqld(folder), folder / "server")
    server.start()
    try:
        yield server.port
    finally:
        server.kill()


@asynccontextmanager
async def _postgres() -> AsyncIterator[int | None]:
    """Run a PostgreSQL server; None without its wheel."""
    programs = find_programs()
    if programs is None:
        yield None
        return
    with serving(programs) as server:
        yield int(server.url.rpartition(":")[2].partition("/")[0])


if __name__ == "__main__":
    asyncio.run(main())
