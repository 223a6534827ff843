"""The writer: jobs of one process share transactions, and with them the wait for the disk."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence

from vitehub_chat.state.providers.sqlite.cleanup import Cleanup
from vitehub_chat.state.providers.sqlite.connections import checkpoint
from vitehub_chat.state.providers.sqlite.jobs import Job
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.providers.sqlite.tables import SqliteTables


class Writer:
    """The connection that writes.

    Jobs that wait at the same time are committed together. An error of one job undoes that job
    alone; when the commit fails, none of them was written.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        statements: Statements,
        cleanup: Cleanup,
        busy_timeout_ms: int,
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._tables = SqliteTables(statements)
        self._cleanup = cleanup
        self._busy_timeout_ms = busy_timeout_ms

    def run(self, jobs: Sequence[Job], /) -> None:
        """Run jobs in one transaction."""
        if len(jobs) == 1 or not self._run_together(jobs):
            for job in jobs:
                self._run_alone(job)

    def tidy(self) -> bool:
        """Remove a slice of what is over, and the traces of what was deleted."""
        is_busy = self._cleanup.run_slice(self._connection)
        if self._statements.has_deleted and not is_busy:
            self._statements.has_deleted = False
            self._checkpoint()
        return is_busy

    def close(self) -> None:
        """Close the connection, with its log emptied as far as possible."""
        self._checkpoint()
        self._connection.close()

    def _run_alone(self, job: Job) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            job.run(self._tables)
            self._connection.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            job.fail(error)
            self._roll_back()

    def _run_together(self, jobs: Sequence[Job]) -> bool:
        """Run jobs with one savepoint each; False if they have to run one by one."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                if not self._run_in_savepoint(job):
                    return False
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            for job in jobs:
                job.fail(error)
            self._roll_back()
        return True

    def _run_in_savepoint(self, job: Job) -> bool:
        """Run one job; False if its error has undone the whole transaction, as some do."""
        self._connection.execute("SAVEPOINT job")
        try:
            job.run(self._tables)
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            if not self._connection.in_transaction:
                return False
            job.fail(error)
            self._connection.execute("ROLLBACK TO job")
        self._connection.execute("RELEASE job")
        return True

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _checkpoint(self) -> None:
        # It is done again by whoever closes the file last.
        with contextlib.suppress(sqlite3.Error):
            checkpoint(self._connection, self._busy_timeout_ms)
