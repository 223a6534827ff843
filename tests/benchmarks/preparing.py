"""Benchmark of preparing a turn: linear in a supplied array, constant in what is stored.

Run it with `uv run python tests/benchmarks/preparing.py`, with a peer beside it with
`uv run --with langchain-core python tests/benchmarks/preparing.py`.

The floor is a loop that builds one frozen value per message. Measured is the time of the
processor, that of all threads.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, too

from tests.benchmarks.counting import count_work
from tests.benchmarks.measuring import (
    Count,
    Figure,
    Options,
    Rounds,
    Subject,
    freeze,
    read_options,
    report,
)
from tests.benchmarks.scenes import (
    WINDOW,
    fill,
    make_agent,
    make_message,
    make_messages,
)
from vitehub_chat import Agent, open_agent_state, prepare_agent_trigger
from vitehub_chat.model.messages import Message

LARGE = 10_000
"""From this size on the garbage of one subject would be felt by the next."""

Values = list[dict[str, Any]]


async def main() -> None:
    """Measure arrays and stored transcripts, and report."""
    options = read_options("preparing a turn")
    figures = await measure_arrays(options)
    stored, counts = await measure_stored(options)
    peer = "langchain-core"
    has_peer = importlib.util.find_spec("langchain_core") is not None
    report(options, [*figures, *stored], counts, {peer: metadata.version(peer) if has_peer else ""})


async def measure_arrays(options: Options) -> list[Figure]:
    """Compare preparing a supplied array with the floor, by the length of the array."""
    sizes = {50: 3} if options.is_tiny else {1_000: 200, 10_000: 40, 100_000: 15}
    figures: list[Figure] = []
    async with AsyncExitStack() as stack:
        agents = {
            "hybrid sessions": make_agent("thread"),
            "hybrid sessions in memory:": make_agent("thread", state="memory:"),
            "no sessions": make_agent("thread", has_sessions=False),
        }
        for agent in agents.values():
            await stack.enter_async_context(agent)
        for size, rounds in sizes.items():
            figures += await _compare_arrays(agents, size, rounds)
    return figures


async def _compare_arrays(agents: Mapping[str, Agent], size: int, rounds: int) -> list[Figure]:
    messages = make_messages(size)
    floor = f"one frozen value for each of {size:,}"
    subjects: dict[str, Subject] = {floor: _floor(messages)}
    for name, agent in agents.items():
        subjects[f"prepare {size:,} messages, {name}"] = _preparing(agent, messages)
    peer = _trimming(messages)
    peers = {} if peer is None else {f"LangChain trim_messages, {size:,} messages": peer}
    freeze()
    measured = Rounds(time.process_time, collects=size >= LARGE)
    await measured.run({**subjects, **peers}, rounds)
    names = [name for name in subjects if name != floor]
    figures = [measured.figure(name, floor, goal=3) for name in names]
    return figures + [measured.figure(names[-1], other) for other in peers]


def _floor(messages: Values) -> Subject:
    async def build() -> list[Message]:
        return [
            Message(each.get("id"), each["role"], tuple(each["parts"]), each["metadata"])
            for each in messages
        ]

    return build


def _preparing(agent: Agent, messages: Sequence[Mapping[str, Any]]) -> Subject:
    given = {"messages": messages, "run": {"threadId": "t"}}
    return lambda: prepare_agent_trigger(agent, "chat.message", given)


def _trimming(messages: Values) -> Subject | None:
    if importlib.util.find_spec("langchain_core") is None:
        return None
    trim: Callable[..., object] = import_module("langchain_core.messages").trim_messages
    plain = [
        {"role": each["role"], "content": each["parts"][0]["text"], "id": each["id"]}
        for each in messages
    ]

    async def run() -> object:
        return trim(plain, max_tokens=WINDOW, token_counter=len, strategy="last")

    return run


async def measure_stored(options: Options) -> tuple[list[Figure], list[Count]]:
    """Compare preparing from a long stored transcript with preparing from a short one."""
    sizes = (10, 100) if options.is_tiny else (100, 100_000)
    figures: list[Figure] = []
    counts: list[Count] = []
    with tempfile.TemporaryDirectory() as folder:
        for scheme, place in (("memory:", ""), ("file:", f"{folder}/state-")):
            async with AsyncExitStack() as stack:
                subjects: dict[str, Subject] = {}
                for rows in sizes:
                    url = f"{scheme}{place and place + str(rows)}"
                    state: Any = await stack.enter_async_context(open_agent_state(url))
                    await fill(state, rows)
                    name = f"prepare from {rows:,} rows in {scheme}"
                    agent = make_agent("transcript", state=state)
                    subjects[name] = _preparing(agent, [make_message("next", rows)])
                    work = await count_work(state, subjects[name])
                    counts.append(Count(what=f"rows read to {name}", count=work.rows))
                    if work.instructions:
                        what = f"SQLite instructions to {name}"
                        counts.append(Count(what=what, count=work.instructions))
                freeze()
                measured = Rounds(time.process_time, collects=False)
                await measured.run(subjects, 3 if options.is_tiny else 300)
                short, long = subjects
                figures.append(measured.figure(long, short, goal=1.2))
    return figures, counts


if __name__ == "__main__":
    asyncio.run(main())
