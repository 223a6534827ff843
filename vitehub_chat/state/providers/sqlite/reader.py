"""The reader: jobs that see one moment of the store and write nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

from vitehub_chat.state.providers.sqlite.failures import breaks_connection
from vitehub_chat.state.providers.sqlite.identity import FileIdentity
from vitehub_chat.state.providers.sqlite.jobs import Job
from vitehub_chat.state.providers.sqlite.kept import KeptRows
from vitehub_chat.state.providers.sqlite.recalling import RecallingTables
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.providers.sqlite.tables import SqliteTables

LARGEST_READ_NOW: Final = 64 * 1024
"""How long a value may be to be read on the event loop, in bytes."""


class Reader:
    """The connection that reads; each job in a transaction of its own."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        statements: Statements,
        identity: FileIdentity | None,
        kept: KeptRows,
        busy_timeout_ms: int,
    ) -> None:
        self._connection = connection
        self._busy_timeout_ms = busy_timeout_ms
        self._may_wait = True
        self._longest = connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
        self._identity = identity
        self._tables = SqliteTables(statements, kept)
        self._windows = RecallingTables(statements, kept)
        self._has_misread = False

    @property
    def is_broken(self) -> bool:
        """Whether another connection may do better."""
        return self._has_misread or (self._identity is not None and self._identity.is_gone)

    def run(self, jobs: Sequence[Job], _more: Callable[[], Sequence[Job]], /) -> None:
        """Run jobs one after the other.

        Raises:
            StateError: The file is gone from its path.
        """
        if self._identity is not None:
            self._identity.check()
        self._set_limits(may_wait=True)
        for job in jobs:
            self._run(job)

    def run_now(self, job: Job, /) -> bool:
        """Run a job without waiting for anybody; False if a worker has to run it.

        That is so if it fails in any way, be it that what it reads is too large. What was read so
        before is not read again until the file changes.
        """
        try:
            if self._identity is not None and not self._identity.is_there:
                return False
            self._set_limits(may_wait=False)
            self._connection.execute("BEGIN")
            self._windows.begin()
            job.run(self._windows)
        except Exception:  # noqa: BLE001  the worker finds out again, and tells it
            return False
        finally:
            self._end()
        return True

    def tidy(self) -> bool:
        """Do nothing: it leaves nothing behind."""
        return False

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _run(self, job: Job) -> None:
        try:
            self._connection.execute("BEGIN")
            job.run(self._tables)
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            self._has_misread = self._has_misread or breaks_connection(error)
            job.fail(error)
        self._end()

    def _end(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")

    def _set_limits(self, *, may_wait: bool) -> None:
        """Let statements wait for who else has the file, and read large values, or do neither."""
        if may_wait == self._may_wait:
            return
        self._may_wait = may_wait
        timeout = self._busy_timeout_ms if may_wait else 0
        self._connection.execute(f"PRAGMA busy_timeout = {timeout}").close()
        self._connection.setlimit(
            sqlite3.SQLITE_LIMIT_LENGTH, self._longest if may_wait else LARGEST_READ_NOW
        )
