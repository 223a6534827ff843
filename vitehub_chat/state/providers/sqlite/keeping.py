"""Keeping: what looks after a state file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

from vitehub_chat.model.clock import Clock
from vitehub_chat.state.providers.sqlite.failures import wrap_failure
from vitehub_chat.state.providers.sqlite.opening import Opening
from vitehub_chat.state.providers.sqlite.tables import SqliteTables
from vitehub_chat.state.sql.keeping import SqlKeeper
from vitehub_chat.state.sql.mapping import Columns, Values
from vitehub_chat.state.tables import Transaction

_WIPES: Final = 5
"""How often the log is emptied until nothing is left in it; somebody may be reading it."""


class RunWrite(Protocol):
    """Runs a step in one transaction."""

    def __call__(self, step: Callable[[Transaction], Any], /) -> Awaitable[Any]:
        """Run it."""


class SqliteKeeper(SqlKeeper):
    """A `Keeper` of a state file."""

    def __init__(self, run_write: RunWrite, opening: Opening, clock: Clock) -> None:
        """Say what runs steps, and what opens connections."""
        super().__init__(self._ask_file, clock)
        self._run_write = run_write
        self._opening = opening

    async def find_versions(self) -> tuple[int, int]:
        """Return the version of the file and that of this release."""
        if self._opening.location.path is not None:
            return await asyncio.to_thread(self._read_versions)
        known = await asyncio.to_thread(self._opening.load_migrations)
        version: int = await self._run_write(
            lambda tables: cast("SqliteTables", tables).read_version(known)
        )
        return version, len(known)

    async def find_problems(self) -> Mapping[str, int]:
        """Count the records that belong to nothing, and damaged pages."""
        found = await super().find_problems()
        damaged = await self._run_write(lambda tables: cast("SqliteTables", tables).count_damage())
        return {**found, "damaged_pages": damaged}

    async def clean_up(self, now: int, /) -> Mapping[str, int]:
        """Remove all that has expired, and its traces."""
        counts = await super().clean_up(now)
        await self.wipe()
        return counts

    async def wipe(self) -> None:
        """Empty the log into the file, in which nothing that was deleted is left."""
        for _ in range(_WIPES):
            await self._run_write(lambda tables: cast("SqliteTables", tables).mark_deleted())
            # The worker tidies between two jobs.
            if not await self._run_write(lambda tables: cast("SqliteTables", tables).has_traces):
                return

    async def _ask_file(
        self, statements: Sequence[tuple[str, Values]]
    ) -> Sequence[Sequence[Columns]]:
        answers: Sequence[Sequence[Columns]] = await self._run_write(
            lambda tables: cast("SqliteTables", tables).ask(statements)
        )
        return answers

    def _read_versions(self) -> tuple[int, int]:
        try:
            return self._opening.read_versions()
        except (sqlite3.Error, OSError) as error:
            raise wrap_failure(error) from error
