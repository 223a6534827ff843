"""The reader: jobs that see one moment of the store and write nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from vitehub_chat.state.providers.sqlite.jobs import Job
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.providers.sqlite.tables import SqliteTables


class Reader:
    """The connection that reads; each job in a transaction of its own."""

    def __init__(self, connection: sqlite3.Connection, statements: Statements) -> None:
        self._connection = connection
        self._tables = SqliteTables(statements)

    def run(self, jobs: Sequence[Job], /) -> None:
        """Run jobs one after the other."""
        for job in jobs:
            self._run(job)

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
            job.fail(error)
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
