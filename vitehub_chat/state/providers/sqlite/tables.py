"""The tables of a store on one SQLite connection."""

from __future__ import annotations

from typing import Final

from vitehub_chat.state.providers.sqlite.rows import SqliteRows
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.sql.tables import SqlTables

_TABLES: Final = (
    "locks",
    "entries",
    "conversations",
    "sessions",
    "rows",
    "summaries",
    "meta",
    "schema",
)


class SqliteTables(SqlTables):
    """What a step sees; the connection says when a transaction begins and ends."""

    def __init__(self, statements: Statements) -> None:
        super().__init__(statements, SqliteRows(statements))
        self._statements = statements

    def drop(self) -> None:
        """Drop every table; nothing works afterwards."""
        for name in _TABLES:
            self._statements.execute(f"drop.{name}", {})
        self._statements.has_deleted = True
