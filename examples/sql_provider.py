"""A state provider of one's own: SQLite in a thread, as if it were a database far away.

All that a provider of a SQL database has to bring is a driver: one statement, or some of them in
one transaction. A distribution makes it known by the scheme of its URLs::

    [project.entry-points."vitehub_agent.state"]
    shelf = "sql_provider:open_shelf"
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from vitehub_chat import chat, define_agent, run_agent_trigger
from vitehub_chat.errors import StateConflictError, StateError, StateUnavailableError
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.sql import Capabilities, SqlAgentState

Statement = tuple[str, Mapping[str, Any]]
Rows = Sequence[tuple[Any, ...]]


class ShelfDriver:
    """A SQLite file whose every transaction is one trip to a thread."""

    capabilities = Capabilities(dialect="sqlite")

    def __init__(self, path: str) -> None:
        """Keep the path; the file is opened when it is first used."""
        self._path = path
        self._thread = ThreadPoolExecutor(1)
        self._connection: sqlite3.Connection | None = None
        self.trips = 0

    async def execute(self, sql: str, named: Mapping[str, Any], /) -> Rows:
        """Run one statement."""
        return (await self.batch([(sql, named)]))[0]

    async def batch(self, statements: Sequence[Statement], /) -> Sequence[Rows]:
        """Run statements in one transaction: all of them or none."""
        self.trips += 1
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._transact, statements)

    async def aclose(self) -> None:
        """Close the file."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)

    def _transact(self, statements: Sequence[Statement]) -> Sequence[Rows]:
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(self._path, isolation_level=None)
                self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("BEGIN IMMEDIATE")
            answers = [self._connection.execute(*each).fetchall() for each in statements]
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise state_error(error) from error
        return answers

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def state_error(error: sqlite3.Error) -> StateError:
    """Return what the state has to know: refused, not done, or broken; no text of the error."""
    if isinstance(error, sqlite3.IntegrityError):
        return StateConflictError("a constraint refused a statement")
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return StateUnavailableError("somebody else kept writing", outcome="not_written")
    return StateError("the shelf is broken")


def open_shelf(url: str, *, clock: Clock | None = None, **options: Any) -> SqlAgentState:
    """Return the state of a URL like `shelf:PATH`; `async with` opens it."""
    driver = ShelfDriver(url.removeprefix("shelf:"))
    return SqlAgentState(driver, clock=clock, options=StateOptions.from_mapping(options))


driver = ShelfDriver("shelf.db")
state = SqlAgentState(driver)
agent = define_agent(
    name="librarian",
    driver="echo",
    capabilities=[chat(trigger_history={"source": "transcript", "max_messages": 4})],
    state=state,
)


async def main() -> None:
    """Hold a short conversation and count the trips of each turn."""
    async with state, agent:
        stored = (await agent.conversation("cli").history(limit=1)).live_edge_seq
        for number, text in enumerate(("Do you have maps?", "Of the sea?", "Thank you."), 1):
            before = driver.trips
            message = {"id": f"m{stored + number}", "role": "user"}
            parts = [{"type": "text", "text": text}]
            given = {"messages": [{**message, "parts": parts}], "run": {"thread_id": "cli"}}
            result = await run_agent_trigger(agent, "chat.message", given)
            print(f"{result.text}  [{driver.trips - before} trips]")


if __name__ == "__main__":
    asyncio.run(main())
