"""The table of stored messages, in SQLite."""

from __future__ import annotations

import sqlite3

from vitehub_chat.state.sql.mapping import Values
from vitehub_chat.state.sql.rows import SqlRows


class SqliteRows(SqlRows):
    """Stored messages by number."""

    def _insert(self, values: Values) -> None:
        try:
            self._sql.change("rows.insert", values)
        except sqlite3.IntegrityError:
            if not self._sql.delete("rows.delete_expired", values):
                raise
            self._sql.change("rows.insert", values)
