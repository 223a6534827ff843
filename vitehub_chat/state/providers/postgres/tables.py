"""The tables of a store on one PostgreSQL connection."""

from __future__ import annotations

from vitehub_chat.errors import StateError
from vitehub_chat.state.providers.postgres.statements import Statements
from vitehub_chat.state.sql.mapping import Values
from vitehub_chat.state.sql.rows import SqlRows
from vitehub_chat.state.sql.tables import SqlTables


class PostgresRows(SqlRows):
    """Stored messages by number."""

    def _insert(self, values: Values) -> None:
        if not self._sql.change("rows.insert", values):
            raise StateError("a message of that id is stored already")


class PostgresTables(SqlTables):
    """What a step sees; the link says when a transaction begins and ends.

    Attributes:
        statements: The statements of this store on the same connection.
    """

    def __init__(self, statements: Statements) -> None:
        super().__init__(statements, PostgresRows(statements))
        self.statements = statements

    def drop(self) -> None:
        """Drop every table; nothing works afterwards."""
        for name in ("drop.tables", "drop.tokens"):
            self.statements.change(name, {})
