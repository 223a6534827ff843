"""The tables of the connection that writes; windows come from tails where these are long enough."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.state.providers.sqlite.kept import KeptRows
from vitehub_chat.state.providers.sqlite.rows import MOST_KEPT, SqliteRows
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.providers.sqlite.tables import SqliteTables
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.tables import RowQuery


class TailingTables(SqliteTables):
    """What a step sees that writes."""

    def __init__(self, statements: Statements, kept: KeptRows) -> None:
        """Use a connection, and what is kept for all connections."""
        super().__init__(statements, kept)
        self._tails = kept.tails
        rows = _Rows(statements, kept)
        self.rows = rows
        self.forget_deleted = rows.forget_deleted

    def begin(self) -> None:
        """Note which version of the file the transaction sees that has begun."""
        # Numbers of different connections say nothing of each other.
        self._tails.begin((self, self._statements.find_data_version()))

    def undo(self) -> None:
        """Rely on nothing that the transaction has written, because that is undone."""
        self._tails.undo()


class _Rows(SqliteRows):
    """Stored messages, of which the newest ones are known."""

    def __init__(self, statements: Statements, kept: KeptRows) -> None:
        super().__init__(statements, kept)
        self._tails = kept.tails

    def insert(self, row: RowRecord, /) -> None:
        """Insert a row under its number, in place of an expired one of the same message."""
        super().insert(row)
        self._tails.insert(row)

    def replace(self, row: RowRecord, /) -> None:
        """Replace the row of that number."""
        super().replace(row)
        self._tails.replace(row)

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        """Delete the rows of a conversation, or of one of its sessions, and count them."""
        self._tails.drop(conversation_key)
        return super().delete(conversation_key, session_key)

    def remove(self, rows: Sequence[RowRecord], /) -> None:
        """Delete these rows."""
        self._tails.remove(rows)
        super().remove(rows)

    def select(self, query: RowQuery, /) -> Sequence[RowRecord]:
        """Return rows in the order asked for."""
        if query.order == "ascending" or query.limit > MOST_KEPT:
            return super().select(query)
        if query.below is None and not self._tails.is_long_enough(query):
            # In most conversations all of the newest rows are of one session, and shown.
            whole = attrs.evolve(query, session_key=None, is_shown=None)
            self._tails.learn(whole, super().select(whole))
        found = self._tails.select(query)
        return super().select(query) if found is None else found
