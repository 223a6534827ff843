"""The table of stored messages, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from vitehub_chat.state.providers.sqlite.statements import Records, Statements
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.tables import RowQuery

_SEQ_BITS: Final = 32

_records = Records(RowRecord, facts=("is_shown",))


class SqliteRows:
    """Stored messages under one number each: conversation and place in it."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    def by_message(self, conversation_key: int, message_id: str, now: int, /) -> RowRecord | None:
        """Return the row of a message id."""
        values = {"conversation_key": conversation_key, "message_id": message_id, "now": now}
        return _records.one(self._sql.fetch("rows.by_message", values))

    def insert(self, row: RowRecord, /) -> None:
        """Insert a row under its number, in place of an expired one of the same message."""
        values = _values_of(row)
        try:
            self._sql.execute("rows.insert", values)
        except sqlite3.IntegrityError:
            if not self._sql.delete("rows.delete_expired", values):
                raise
            self._sql.execute("rows.insert", values)

    def replace(self, row: RowRecord, /) -> None:
        """Replace the row of that number."""
        self._sql.execute("rows.replace", _values_of(row))

    def select(self, query: RowQuery, /) -> Sequence[RowRecord]:
        """Return rows in the order asked for; touches about as many as it returns."""
        return _records.all(self._sql.execute(_name_of(query), _bounds_of(query)))

    def exists(self, query: RowQuery, /) -> bool:
        """Tell whether any row matches."""
        return self._sql.exists(_name_of(query), {**_bounds_of(query), "limit": 1})

    def pending(self, conversation_key: int, /) -> Sequence[RowRecord]:
        """Return the rows of status `pending`, by number."""
        values = {"conversation_key": conversation_key}
        return _records.all(self._sql.execute("rows.pending", values))

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        """Delete the rows of a conversation, or of one of its sessions, and count them."""
        values = {
            "session_key": session_key,
            "above": _id_of(conversation_key, 0),
            "below": _id_of(conversation_key + 1, 0),
        }
        whole = session_key is None
        return self._sql.delete(
            "rows.delete_conversation" if whole else "rows.delete_session", values
        )


def _id_of(conversation_key: int, seq: int) -> int:
    """Return the number of a place, or of the nearest one in that conversation."""
    return (conversation_key << _SEQ_BITS) + min(max(seq, 0), 1 << _SEQ_BITS)


def _values_of(row: RowRecord) -> dict[str, Any]:
    return {**_records.values_of(row), "id": _id_of(row.conversation_key, row.seq)}


def _name_of(query: RowQuery) -> str:
    scope = "conversation" if query.session_key is None else "session"
    hidden = "_hidden" if query.is_shown is False else ""
    return f"rows.{scope}{hidden}_{query.order}"


def _bounds_of(query: RowQuery) -> dict[str, Any]:
    key, below = query.conversation_key, query.below
    return {
        "conversation_key": key,
        "session_key": query.session_key,
        "least_shown": int(query.is_shown is True),
        "above": _id_of(key, query.above or 0),
        "below": _id_of(key + 1, 0) if below is None else _id_of(key, below),
        "limit": query.limit,
        "now": query.now,
    }
