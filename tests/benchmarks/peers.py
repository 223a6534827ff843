"""Benchmark of the SQLite file against what other libraries keep sessions in.

Run it with `uv run --no-default-groups --group benchmarks python tests/benchmarks/peers.py`.

Each has one thread of 10,000 messages in a file of its own, with the settings that it comes with,
which is full durability for all of them. A turn is a message and its answer. google-adk takes one
event at a time, so that its turn is two calls; filling its thread takes some minutes.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from importlib import import_module, metadata
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
from tests.benchmarks.scenes import (
    PLAIN,
    WINDOW,
    Turns,
    appending,
    fill,
    in_turn,
    loading,
    together,
)
from vitehub_chat.state.opening import open_agent_state

TASKS = 16
OPENAI, ADK = "openai-agents", "google-adk"
OURS = "vitehub-chat"


@attrs.frozen
class Store:
    """What keeps a thread: how a turn is appended, and how the newest messages are loaded."""

    name: str
    append: Subject
    load: Subject


@attrs.frozen(kw_only=True)
class Scale:
    """How much is measured."""

    length: int = 10_000
    rounds: int = 200
    many_rounds: int = 15
    times: int = 5


TINY = Scale(length=30, rounds=3, many_rounds=2, times=2)


async def main() -> None:
    """Measure and report."""
    options = read_options("other libraries")
    scale = TINY if options.is_tiny else Scale()
    turns = Turns("turn")
    turns.make(3 * (scale.rounds + 1) + 2 * TASKS * scale.times * (scale.many_rounds + 1))
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            ours = await _open_ours(stack, folder, scale, turns)
            others = [
                *(await _open_openai(stack, folder, scale) if _has("agents") else []),
                *(await _open_adk(folder, scale) if _has("google.adk") else []),
            ]
            figures = await _compare_alone(ours, others, scale.rounds)
            figures += await _compare_many(ours, others, scale)
    report(options, figures, [], {name: _version(name) for name in (OPENAI, ADK)})


async def _compare_alone(ours: Store, others: list[Store], rounds: int) -> list[Figure]:
    subjects: dict[str, Subject] = {}
    for store in (ours, *others):
        subjects[_append(store)] = store.append
        subjects[_load(store)] = store.load
        subjects[_both(store)] = in_turn(store.append, store.load)
    freeze()
    measured = Rounds(time.perf_counter, collects=False)
    await measured.run(subjects, rounds)
    return [
        measured.figure(what(ours), what(other), 1)
        for other in others or [ours]
        for what in (_append, _load, _both)
    ]


async def _compare_many(ours: Store, others: list[Store], scale: Scale) -> list[Figure]:
    subjects: dict[str, Subject] = {}
    for store in (ours, *others):
        turn = in_turn(store.append, store.load)
        subjects[_many(store)] = together(scale.times, *[turn] * TASKS)
    freeze()
    measured = Rounds(time.perf_counter, collects=False)
    sizes = dict.fromkeys(subjects, TASKS * scale.times)
    await measured.run(subjects, scale.many_rounds, sizes)
    return [measured.figure(_many(ours), _many(other), 1) for other in others or [ours]]


async def _open_ours(stack: AsyncExitStack, folder: str, scale: Scale, turns: Turns) -> Store:
    state: Any = await stack.enter_async_context(open_agent_state(f"file:{folder}/ours.db"))
    await fill(state, scale.length, key=PLAIN, has_sessions=False)
    return Store(OURS, appending(state, turns), loading(state))


async def _open_openai(stack: AsyncExitStack, folder: str, scale: Scale) -> list[Store]:
    memory: Any = import_module("agents.extensions.memory")
    plain = import_module("agents").SQLiteSession("t", f"{folder}/openai.db")
    stack.callback(plain.close)
    with_aiosqlite = memory.AsyncSQLiteSession("t", f"{folder}/openai-async.db")
    stack.push_async_callback(with_aiosqlite.close)
    stores = []
    for session in (plain, with_aiosqlite):
        await session.add_items([_item(index) for index in range(scale.length)])
        stores.append(_openai_store(session, scale.length))
    return stores


def _openai_store(session: Any, length: int) -> Store:
    numbers = itertools.count(length, 2)

    async def append() -> object:
        index = next(numbers)
        return await session.add_items([_item(index), _item(index + 1)])

    name = type(session).__name__
    return Store(name, append, lambda: session.get_items(limit=WINDOW))


async def _open_adk(folder: str, scale: Scale) -> list[Store]:
    service = import_module("google.adk.sessions.sqlite_session_service").SqliteSessionService(
        f"{folder}/adk.db"
    )
    newest = import_module("google.adk.sessions.base_session_service").GetSessionConfig(
        num_recent_events=WINDOW
    )
    names = {"app_name": "benchmark", "user_id": "u", "session_id": "t"}
    session = await service.create_session(**names)
    numbers = itertools.count()
    for _ in range(scale.length):
        await service.append_event(session, _event(next(numbers)))
    session.events.clear()

    async def append_event() -> object:
        event = _event(next(numbers))
        while True:
            try:
                return await _insist(service.append_event, session, event)
            except ValueError:  # another task was faster, and the session has to be read again
                session.last_update_time = (await load()).last_update_time

    async def append() -> object:
        return [await append_event() for _ in range(2)]

    async def load() -> Any:
        return await _insist(partial(service.get_session, **names, config=newest))

    return [Store(type(service).__name__, append, load)]


async def _insist(call: Callable[..., Awaitable[Any]], *arguments: object) -> Any:
    """Call until the file is not locked, as it is now and then when many tasks write."""
    while True:
        try:
            return await call(*arguments)
        except sqlite3.OperationalError:
            continue


def _item(index: int) -> dict[str, str]:
    role = "assistant" if index % 2 else "user"
    return {"role": role, "content": f"This is what was said as number {index}."}


def _event(index: int) -> Any:
    types = import_module("google.genai.types")
    said = types.Part(text=f"This is what was said as number {index}.")
    author, role = ("benchmark", "model") if index % 2 else ("user", "user")
    return import_module("google.adk.events.event").Event(
        author=author,
        invocation_id=f"i{index // 2}",
        content=types.Content(role=role, parts=[said]),
    )


def _append(store: Store) -> str:
    return f"{store.name}: append a turn"


def _load(store: Store) -> str:
    return f"{store.name}: load the newest 20"


def _both(store: Store) -> str:
    return f"{store.name}: append and load"


def _many(store: Store) -> str:
    return f"{store.name}: append and load in {TASKS} tasks"


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    asyncio.run(main())
