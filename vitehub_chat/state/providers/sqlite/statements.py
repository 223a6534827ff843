"""Statements: named SQL on one connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from vitehub_chat.state.sql.mapping import Columns, Values

_read_damaged: Final = partial(str, encoding="utf-8", errors="surrogateescape")


class Statements:
    """The named statements of a store on one connection.

    Attributes:
        is_searched: Whether the texts of rows are kept for search.
        has_deleted: Whether content was deleted since this was last set to False.
        has_traces: Whether some of it may still be in the log.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        texts: Mapping[str, str],
        *,
        is_searched: bool = True,
    ) -> None:
        self.is_searched = is_searched
        self._connection = connection
        self._texts = texts
        self.has_deleted = False
        self.has_traces = False

    def execute(self, name: str, values: Values) -> sqlite3.Cursor:
        """Run one statement."""
        return self._connection.execute(self._texts[name], values)

    def fetch(self, name: str, values: Values) -> Columns | None:
        """Run one statement and return its first row, or None."""
        row: Columns | None = self._read(name, values, sqlite3.Cursor.fetchone)
        return row

    def fetch_existing(self, name: str, values: Values) -> Columns:
        """Run one statement and return its first row.

        Raises:
            KeyError: There is none.
        """
        row = self.fetch(name, values)
        if row is None:
            raise KeyError(name)
        return row

    def fetch_all(self, name: str, values: Values) -> Sequence[Columns]:
        """Run one statement and return its rows."""
        rows: Sequence[Columns] = self._read(name, values, sqlite3.Cursor.fetchall)
        return rows

    def _read(self, name: str, values: Values, fetch: Callable[[sqlite3.Cursor], Any]) -> Any:
        """Run one statement and return what a cursor gives, damaged text with half pairs in it."""
        try:
            return fetch(self.execute(name, values))
        except sqlite3.OperationalError as error:
            # Which value it is remains open, so who decodes them has to find out.
            if "Could not decode to UTF-8" not in str(error):
                raise
        self._connection.text_factory = _read_damaged
        try:
            return fetch(self.execute(name, values))
        finally:
            self._connection.text_factory = str

    def exists(self, name: str, values: Values) -> bool:
        """Tell whether a query has any row, without reading one."""
        found = self._connection.execute(f"SELECT EXISTS ({self._texts[name]})", values)
        return bool(found.fetchone()[0])

    def change(self, name: str, values: Values) -> int:
        """Run one statement and return how many rows it changed."""
        return self.execute(name, values).rowcount

    def find_data_version(self) -> int:
        """Return a number that changes when another connection has written.

        A transaction that has begun sees the file as it is now, from here on.
        """
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def count_damage(self) -> int:
        """Return how many faults SQLite finds in the pages of the file, at most 100."""
        found = self._connection.execute("PRAGMA integrity_check(100)").fetchall()
        orphans = self._connection.execute("PRAGMA foreign_key_check").fetchall()
        return len(orphans) + (0 if found == [("ok",)] else len(found))

    def delete(self, name: str, values: Values) -> int:
        """Run a statement that deletes content and return how many rows it deleted."""
        count = self.change(name, values)
        self.has_deleted = self.has_deleted or count > 0
        return count
