"""Counting: what one call does to a state, below its steps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vitehub_chat.state.stepped import SteppedAgentState

_Step = Callable[[Any], Any]


@attrs.define
class Work:
    """What was done.

    Attributes:
        trips: Steps that were run, and calls of other threads; on a file each step is one, too.
        commits: Transactions that SQLite committed.
        rows: Stored messages that steps got.
        instructions: What SQLite executed; 0 for a state without it.
    """

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
    loop = asyncio.get_running_loop()
    run_in_executor = loop.run_in_executor
    run_write, run_read = state.run_write, state.run_read

    def counted_executor(*args: Any) -> Any:
        work.trips += 1
        return run_in_executor(*args)

    async def counted_write(step: _Step, /) -> Any:
        work.trips += 1
        return await run_write(_counted(step, work))

    async def counted_read(step: _Step, /) -> Any:
        work.trips += 1
        return await run_read(_counted(step, work))

    with (
        _replaced(loop, "run_in_executor", counted_executor),
        _replaced(state, "run_write", counted_write),
        _replaced(state, "run_read", counted_read),
    ):
        await call()
        # The commit of the last step comes after it; this one waits behind it.
        await run_write(_stop_tracing)
    return work


def _counted(step: _Step, work: Work) -> _Step:
    def run(tables: Any) -> Any:
        table = tables.rows
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
