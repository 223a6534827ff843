"""Statements: named SQL on one connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from vitehub_chat.state.sql.mapping import Columns, Values


class Statements:
    """The named statements of a store on one connection.

    Attributes:
        has_deleted: Whether content was deleted since this was last set to False.
    """

    def __init__(self, connection: sqlite3.Connection, texts: Mapping[str, str]) -> None:
        self._connection = connection
        self._texts = texts
        self.has_deleted = False

    def execute(self, name: str, values: Values) -> sqlite3.Cursor:
        """Run one statement."""
        return self._connection.execute(self._texts[name], values)

    def fetch(self, name: str, values: Values) -> Columns | None:
        """Run one statement and return its first row, or None."""
        row: Columns | None = self.execute(name, values).fetchone()
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
        return self.execute(name, values).fetchall()

    def exists(self, name: str, values: Values) -> bool:
        """Tell whether a query has any row, without reading one."""
        found = self._connection.execute(f"SELECT EXISTS ({self._texts[name]})", values)
        return bool(found.fetchone()[0])

    def change(self, name: str, values: Values) -> int:
        """Run one statement and return how many rows it changed."""
        return self.execute(name, values).rowcount

    def delete(self, name: str, values: Values) -> int:
        """Run a statement that deletes content and return how many rows it deleted."""
        count = self.change(name, values)
        self.has_deleted = self.has_deleted or count > 0
        return count
