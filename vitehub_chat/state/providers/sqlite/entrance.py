"""The entrance: how transactions that write wait for those of other processes."""

from __future__ import annotations

import sqlite3
import time
from typing import Final

_SHORTEST: Final = 0.0005  # as a transaction takes; who looks more often slows the others down
_LONGEST: Final = 0.004
_LONG: Final = 0.0005
_REMEMBERED: Final = 64


class Entrance:
    """Begins transactions on one connection.

    SQLite sleeps up to 100 ms between two looks at a file that is busy, as long as hundreds of
    transactions take. Where others were met lately the looks are short.
    """

    def __init__(self, connection: sqlite3.Connection, busy_timeout_ms: int) -> None:
        """Use a connection that has this timeout set."""
        self._connection = connection
        self._busy_timeout_ms = busy_timeout_ms
        self._expecting = 0

    def begin(self) -> None:
        """Begin a transaction that writes.

        Raises:
            sqlite3.OperationalError: Others kept writing for the whole timeout.
        """
        started = time.monotonic()
        if self._expecting:
            self._expecting -= 1
            self._begin_soon(started + self._busy_timeout_ms / 1000)
        else:
            self._connection.execute("BEGIN IMMEDIATE")
        if time.monotonic() - started > _LONG:
            self._expecting = _REMEMBERED

    def _begin_soon(self, deadline: float) -> None:
        self._connection.execute("PRAGMA busy_timeout = 0").close()
        try:
            pause = _SHORTEST
            while not self._has_begun(deadline):
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST)
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {self._busy_timeout_ms}").close()

    def _has_begun(self, deadline: float) -> bool:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() >= deadline:
                raise
            return False
        return True
