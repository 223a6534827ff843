"""A driver over the standard library's SQLite that counts requests, and loses answers on demand."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from vitehub_chat.errors import StateConflictError, StateError, StateUnavailableError
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.sql import Capabilities, SqlAgentState
from vitehub_chat.state.sql.driver import Columns, Statement, Value
from vitehub_chat.state.sql.retrying import Retrying

Fault = Literal["lost", "late", "away", None]
"""`lost`: written, no answer. `late`: no answer, and written with the next request. `away`: not."""


async def no_pause(_seconds: float) -> None:
    """Let others run."""
    await asyncio.sleep(0)


AT_ONCE = Retrying(sleep=no_pause, failures=200)


class SeamDriver:
    """A SQLite database by requests.

    Attributes:
        requests: The first words of the statements of each request, in order.
        fault: Called with the statements of each request, it says what goes wrong.
    """

    def __init__(self, path: str, *, is_shared: bool = True) -> None:
        self.capabilities = Capabilities(is_durable=path != ":memory:", is_shared=is_shared)
        self.requests: list[list[str]] = []
        self.fault: Callable[[Sequence[Statement]], Fault] = lambda _: None
        self._path = path
        self._late: list[Sequence[Statement]] = []
        self._pool: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None

    async def execute(self, sql: str, named: Mapping[str, Value], /) -> Sequence[Columns]:
        return (await self.batch([(sql, named)]))[0]

    async def batch(self, statements: Sequence[Statement], /) -> Sequence[Sequence[Columns]]:
        self.requests.append([text.split(None, 1)[0] for text, _ in statements])
        self._pool = self._pool or ThreadPoolExecutor(1)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._answer, list(statements))

    async def aclose(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.get_running_loop().run_in_executor(pool, self._disconnect)
            pool.shutdown(wait=False)

    def _answer(self, statements: Sequence[Statement]) -> Sequence[Sequence[Columns]]:
        fault = self.fault(statements)
        if fault == "away":
            raise StateUnavailableError("away", outcome="not_written")
        if fault == "late":
            self._late.append(statements)
            raise StateUnavailableError("late", outcome="unknown")
        answers = self._transact(statements)
        while self._late:
            try:
                self._transact(self._late.pop(0))
            except StateConflictError:
                continue
        if fault == "lost":
            raise StateUnavailableError("lost", outcome="unknown")
        return answers

    def _transact(self, statements: Sequence[Statement]) -> Sequence[Sequence[Columns]]:
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, isolation_level=None, timeout=20)
            self._connection.execute("PRAGMA synchronous=OFF")
        writes = any(not text.lstrip().startswith("SELECT") for text, _ in statements)
        self._connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        try:
            answers = [self._connection.execute(*each).fetchall() for each in statements]
        except sqlite3.Error as error:
            self._connection.execute("ROLLBACK")
            raise _wrapped(error) from error
        self._connection.execute("COMMIT")
        return answers

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def seam_state(driver: SeamDriver, clock: Clock, **options: object) -> SqlAgentState:
    """Return a closed state over a driver that never waits before it tries again."""
    checked = StateOptions.from_mapping(options)
    return SqlAgentState(driver, clock=clock, options=checked, retrying=AT_ONCE)


def _wrapped(error: sqlite3.Error) -> StateError:
    if isinstance(error, sqlite3.IntegrityError):
        return StateConflictError("a constraint refused a statement")
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StateUnavailableError("somebody else kept writing", outcome="not_written")
    return StateError("the database refused a statement")
