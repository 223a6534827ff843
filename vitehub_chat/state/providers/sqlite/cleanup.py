"""Cleanup: what is over leaves the file, a little at a time."""

from __future__ import annotations

import sqlite3
from typing import Final

from vitehub_chat.model.clock import Clock, to_epoch_us
from vitehub_chat.state.providers.sqlite.kept import KeptRows
from vitehub_chat.state.providers.sqlite.statements import Statements

SLICE: Final = 200
"""How many rows one transaction removes at most, of each kind."""

_PURGES: Final = ("rows.purge", "entries.purge", "documents.purge")


class Cleanup:
    """Removes expired rows and forgotten entries: at once, and then once per interval."""

    def __init__(
        self,
        statements: Statements,
        clock: Clock,
        interval_ms: int,
        kept: KeptRows | None = None,
    ) -> None:
        self._statements = statements
        self._kept = kept
        self._clock = clock
        self._interval = interval_ms * 1000
        self._due_at: int | None = None

    def run_slice(self, connection: sqlite3.Connection) -> bool:
        """Remove some if it is time to; tell whether more are left.

        A file that is busy or full is left alone until the next time.
        """
        now = to_epoch_us(self._clock.now())
        if self._due_at is not None and now < self._due_at:
            return False
        try:
            is_more = self._remove(connection, now)
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            is_more = False
        self._due_at = None if is_more else now + self._interval
        return is_more

    def _remove(self, connection: sqlite3.Connection, now: int) -> bool:
        values = {"now": now, "limit": SLICE}
        if not self._statements.fetch_existing("meta.holds_expired", values)[0]:
            return False
        connection.execute("BEGIN IMMEDIATE")
        purged = [self._statements.delete(name, values) for name in _PURGES]
        connection.execute("COMMIT")
        if self._kept is not None and purged[0]:
            self._kept.clear()
        # As a script, because `execute` goes one step only, and each step frees one page.
        connection.executescript(f"PRAGMA incremental_vacuum({SLICE})")
        return SLICE in purged
