"""Counting: what one call does to a state, below its steps."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vitehub_chat.state.needs import Needs
    from vitehub_chat.state.stepped import SteppedAgentState

_Step = Callable[[Any], Any]


@attrs.define
class Work:
    """What was done.

    Attributes:
        calls: Calls of the Protocols of the state, whatever they cost.
        trips: Jobs that were handed to another thread; 0 for a state without threads of its own.
        commits: Transactions that SQLite committed.
        rows: Stored messages that steps got.
        instructions: What SQLite executed; 0 for a state without it.
    """

    calls: int = 0
    trips: int = 0
    commits: int = 0
    rows: int = 0
    instructions: int = 0

    def tick(self) -> int:
        """Count one instruction, and go on."""
        self.instructions += 1
        return 0

    def trace(self, statement: str) -> None:
        """Count a commit among statements."""
        self.commits += statement == "COMMIT"


class _CountedRows:
    """The table of stored messages; what it returns is counted."""

    def __init__(self, table: Any, work: Work) -> None:
        self._table = table
        self._work = work

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            found = getattr(self._table, method)(*args)
            self._work.rows += len(found) if isinstance(found, list) else found is not None
            return found

        return call


async def count_work(state: SteppedAgentState, call: Callable[[], Awaitable[object]]) -> Work:
    """Return what a call did to a state."""
    work = Work()
    run_write, run_read, read_with = state.run_write, state.run_read, state.read_with

    async def counted_write(step: _Step, /) -> Any:
        return await run_write(_counted(step, work))

    async def counted_read(step: _Step, /) -> Any:
        return await run_read(_counted(step, work))

    async def counted_read_with(step: _Step, needs: Needs, /) -> Any:
        return await read_with(_counted(step, work), needs)

    with ExitStack() as stack:
        _count_calls(state, work, stack)
        _count_trips(state, work, stack)
        stack.enter_context(_replaced(state, "run_write", counted_write))
        stack.enter_context(_replaced(state, "run_read", counted_read))
        stack.enter_context(_replaced(state, "read_with", counted_read_with))
        await call()
    # The commit of the last step comes after it; this one waits behind it.
    await run_write(_stop_tracing)
    return work


async def count_calls(state: SteppedAgentState, call: Callable[[], Awaitable[object]]) -> int:
    """Return how often a call asks something of the Protocols of a state, and change nothing."""
    work = Work()
    with ExitStack() as stack:
        _count_calls(state, work, stack)
        await call()
    return work.calls


def _count_calls(state: SteppedAgentState, work: Work, stack: ExitStack) -> None:
    stores = (state.turns, state.transcripts, state.sessions, state.summaries, state.plans)
    for store in (*stores, state.values, state.admin):
        for name, method in vars(type(store)).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                counted = _tallied(getattr(store, name), work, "calls")
                stack.enter_context(_replaced(store, name, counted))


def _count_trips(state: SteppedAgentState, work: Work, stack: ExitStack) -> None:
    loop = asyncio.get_running_loop()
    counted = _tallied(loop.run_in_executor, work, "trips")
    stack.enter_context(_replaced(loop, "run_in_executor", counted))
    for worker in _workers_of(state):
        submit = _tallied(worker.submit, work, "trips")
        stack.enter_context(_replaced(worker, "submit", submit))


def _tallied(function: Callable[..., Any], work: Work, what: str) -> Callable[..., Any]:
    def tally(*args: Any, **kwargs: Any) -> Any:
        setattr(work, what, getattr(work, what) + 1)
        return function(*args, **kwargs)

    return tally


def _workers_of(state: Any) -> list[Any]:
    """Return the threads that a state of a file has for itself."""
    find_engine = getattr(state, "_engine", None)
    if not callable(find_engine):
        return []
    engine = find_engine()
    return list(dict.fromkeys([engine.writer, engine.reader]))


def _counted(step: _Step, work: Work) -> _Step:
    def run(tables: Any) -> Any:
        table = tables.rows
        if isinstance(table, _CountedRows):
            return step(tables)
        connection = _connection_of(tables)
        tables.rows = _CountedRows(table, work)
        if connection is not None:
            connection.set_trace_callback(work.trace)
            connection.set_progress_handler(work.tick, 1)
        try:
            return step(tables)
        finally:
            tables.rows = table
            if connection is not None:
                connection.set_progress_handler(None, 1)

    return run


def _stop_tracing(tables: Any) -> None:
    connection = _connection_of(tables)
    if connection is not None:
        connection.set_trace_callback(None)


def _connection_of(tables: Any) -> Any:
    return getattr(getattr(tables, "_sql", None), "_connection", None)


@contextmanager
def _replaced(owner: object, name: str, value: object) -> Iterator[None]:
    setattr(owner, name, value)
    try:
        yield
    finally:
        delattr(owner, name)
