"""The tables of a store on one SQLite connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vitehub_chat.state.providers.sqlite.kept import KeptRows
from vitehub_chat.state.providers.sqlite.rows import SqliteRows
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.sql.mapping import Columns, Values
from vitehub_chat.state.sql.named import Migration
from vitehub_chat.state.sql.tables import SqlTables
from vitehub_chat.state.sql.versions import read_version

_TABLES: Final = (
    "locks",
    "entries",
    "conversations",
    "sessions",
    "rows",
    "summaries",
    "documents",
    "meta",
    "schema",
)


class SqliteTables(SqlTables):
    """What a step sees; the connection says when a transaction begins and ends."""

    def __init__(self, statements: Statements, kept: KeptRows | None = None) -> None:
        """Use a connection; `kept` are the rows that are kept for other connections, too."""
        self._kept = KeptRows() if kept is None else kept
        rows = SqliteRows(statements, self._kept)
        super().__init__(statements, rows)
        self._statements = statements
        self.forget_deleted = rows.forget_deleted

    @property
    def has_traces(self) -> bool:
        """Whether what was deleted may still be in the log."""
        return self._statements.has_deleted or self._statements.has_traces

    def mark_deleted(self) -> None:
        """Let the log be emptied once the transaction is over, and no row be kept."""
        self._statements.has_deleted = True
        self._kept.clear()

    def ask(self, statements: Sequence[tuple[str, Values]]) -> Sequence[Sequence[Columns]]:
        """Run statements that no table is for, and return what each of them answers."""
        return [self._statements.fetch_all(name, values) for name, values in statements]

    def read_version(self, migrations: Sequence[Migration]) -> int:
        """Return the version of the schema."""
        return read_version(self._statements, migrations)

    def count_damage(self) -> int:
        """Return how many faults SQLite finds in the pages of the file."""
        return self._statements.count_damage()

    def drop(self) -> None:
        """Drop every table; nothing works afterwards."""
        for name in _TABLES:
            self._statements.execute(f"drop.{name}", {})
        self.mark_deleted()
