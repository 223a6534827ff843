"""The table of stored messages, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from vitehub_chat.state.providers.sqlite.kept import KeptRows
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.sql.columns import ROWS
from vitehub_chat.state.sql.mapping import Statements, Values
from vitehub_chat.state.sql.rows import SqlRows
from vitehub_chat.state.tables import RowQuery

MOST_KEPT: Final = 200
"""How many rows a query may be for to be kept: those of a window, not all of an export."""


class SqliteRows(SqlRows):
    """Stored messages by number; the newest ones are kept for the next reader."""

    def __init__(self, statements: Statements, kept: KeptRows) -> None:
        super().__init__(statements)
        self._kept = kept
        self._gone: list[RowRecord] = []
        self._gone_conversations: set[int] = set()

    def insert(self, row: RowRecord, /) -> None:
        """Insert a row under its number, in place of an expired one of the same message."""
        super().insert(row)
        self._kept.put(row, ROWS.columns_of(row))

    def replace(self, row: RowRecord, /) -> None:
        """Replace the row of that number."""
        super().replace(row)
        self._kept.put(row, ROWS.columns_of(row))

    def select(self, query: RowQuery, /) -> Sequence[RowRecord]:
        """Return rows in the order asked for; touches about as many as it returns."""
        if query.order == "ascending" or query.limit > MOST_KEPT:
            return super().select(query)
        return self._kept.records_of(self._fetch(query))

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        """Delete the rows of a conversation, or of one of its sessions, and count them."""
        self._gone_conversations.add(conversation_key)
        return super().delete(conversation_key, session_key)

    def remove(self, rows: Sequence[RowRecord], /) -> None:
        """Delete these rows."""
        self._gone.extend(rows)
        super().remove(rows)

    def forget_deleted(self) -> None:
        """Forget what was deleted, once that is committed and nobody reads it again."""
        if self._gone:
            self._kept.forget(self._gone)
            self._gone = []
        for conversation_key in self._gone_conversations:
            self._kept.forget_conversation(conversation_key)
        self._gone_conversations.clear()

    def _insert(self, values: Values) -> None:
        try:
            self._sql.change("rows.insert", values)
        except sqlite3.IntegrityError:
            if not self._sql.delete("rows.delete_expired", values):
                raise
            self._sql.change("rows.insert", values)
