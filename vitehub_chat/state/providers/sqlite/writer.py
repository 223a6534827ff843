"""The writer: jobs of one process share transactions, and with them the wait for the disk."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence

from vitehub_chat.state.providers.sqlite.cleanup import Cleanup
from vitehub_chat.state.providers.sqlite.connections import checkpoint
from vitehub_chat.state.providers.sqlite.entrance import Entrance
from vitehub_chat.state.providers.sqlite.failures import breaks_connection
from vitehub_chat.state.providers.sqlite.identity import FileIdentity
from vitehub_chat.state.providers.sqlite.jobs import Job
from vitehub_chat.state.providers.sqlite.kept import KeptRows
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.providers.sqlite.tailing import KnownTables, TailingTables


class Writer:
    """The connection that writes.

    Jobs that wait at the same time are committed together. An error of one job undoes that job
    alone, for which the others run once more; when the commit fails, none of them was written.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        statements: Statements,
        cleanup: Cleanup,
        busy_timeout_ms: int,
        identity: FileIdentity | None,
        kept: KeptRows,
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._tables = TailingTables(statements, kept)
        self._known = KnownTables(kept)
        self._cleanup = cleanup
        self._entrance = Entrance(connection, busy_timeout_ms)
        self._busy_timeout_ms = busy_timeout_ms
        self._identity = identity
        self._has_misread = False

    @property
    def is_broken(self) -> bool:
        """Whether another connection may do better."""
        return self._has_misread or (self._identity is not None and self._identity.is_gone)

    def run(self, jobs: Sequence[Job], more: Callable[[], Sequence[Job]], /) -> None:
        """Run jobs in one transaction, and those that come before its end.

        Raises:
            StateError: The file is gone from its path; nothing was written to what is there now.
        """
        self._check_file()
        taken = list(jobs)
        if not self._run_together(taken, more) and not self._run_apart(taken):
            for job in taken:
                self._run_alone(job)
        self._tables.forget_deleted()
        self._check_file()  # or what is acknowledged may be in a file that is gone

    def _check_file(self) -> None:
        if self._identity is not None:
            self._identity.check()

    def run_now(self, job: Job, /) -> bool:
        """Run a job that reads a window on what is known; False if the file has to be asked.

        It is asked afterwards whether that still holds, which takes less than to read anything.
        """
        if self._identity is not None and not self._identity.is_there:
            return False
        try:
            job.run(self._known)
            is_known = self._tables.is_current
        except Exception:  # noqa: BLE001  who reads the file finds out again, and tells it
            return False
        return is_known

    def tidy(self) -> bool:
        """Remove a slice of what is over, and the traces of what was deleted."""
        is_busy = self._cleanup.run_slice(self._connection)
        if self._statements.has_deleted and not is_busy:
            self._statements.has_deleted = False
            self._statements.has_traces = not self._checkpoint()
        return is_busy

    def close(self) -> None:
        """Close the connection, with its log emptied as far as possible."""
        self._checkpoint()
        self._connection.close()

    def _run_together(self, taken: list[Job], more: Callable[[], Sequence[Job]]) -> bool:
        """Run jobs and add more to them; False if one of several failed, with which all are undone.

        Waiting for the disk takes longest, so whatever comes until then goes along.
        """
        try:
            self._begin()
            waiting: Sequence[Job] = taken[:]
            while waiting:
                if not all(map(self._run_or_undo, waiting)):
                    return len(taken) == 1
                waiting = more()
                taken += waiting
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._fail_all(taken, error)
        return True

    def _run_apart(self, taken: list[Job]) -> bool:
        """Run jobs each of which can be undone alone; False if they have to run one by one."""
        try:
            self._begin()
            if not all(map(self._run_in_savepoint, taken)):
                return False
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._fail_all(taken, error)
        return True

    def _begin(self) -> None:
        self._entrance.begin()
        self._tables.begin()

    def _run_alone(self, job: Job) -> None:
        self._run_together([job], lambda: ())

    def _run_or_undo(self, job: Job) -> bool:
        """Run a job; False if it failed, and all that the transaction has written is undone."""
        try:
            job.run(self._tables)
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            self._fail(job, error)
            self._roll_back()
            return False
        return True

    def _run_in_savepoint(self, job: Job) -> bool:
        """Run one job; False if its error has undone the whole transaction, as some do."""
        self._connection.execute("SAVEPOINT job")
        try:
            job.run(self._tables)
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            self._tables.undo()
            if not self._connection.in_transaction:
                return False
            self._fail(job, error)
            self._connection.execute("ROLLBACK TO job")
        self._connection.execute("RELEASE job")
        return True

    def _fail(self, job: Job, error: BaseException) -> None:
        self._has_misread = self._has_misread or breaks_connection(error)
        job.fail(error)

    def _fail_all(self, jobs: Sequence[Job], error: sqlite3.Error) -> None:
        for job in jobs:
            self._fail(job, error)
        self._roll_back()

    def _roll_back(self) -> None:
        self._tables.undo()
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _checkpoint(self) -> bool:
        """Empty the log, and tell whether nothing is left in it."""
        # It is done again by whoever closes the file last.
        with contextlib.suppress(sqlite3.Error):
            return checkpoint(self._connection, self._busy_timeout_ms)
        return False
