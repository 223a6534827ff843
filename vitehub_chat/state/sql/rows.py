"""The table of stored messages, in SQL."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

from vitehub_chat.state.records import AuthoredRow, RowRecord
from vitehub_chat.state.sql.columns import AUTHORED, ROWS, SEQ_BITS, row_id, values_of_row
from vitehub_chat.state.sql.mapping import Columns, Statements, Values
from vitehub_chat.state.tables import RowQuery


class SqlRows(abc.ABC):
    """Stored messages under one number each: conversation and place in it."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    def by_message(self, conversation_key: int, message_id: str, now: int, /) -> RowRecord | None:
        """Return the row of a message id."""
        values = {"conversation_key": conversation_key, "message_id": message_id, "now": now}
        return ROWS.one(self._sql.fetch("rows.by_message", values))

    def insert(self, row: RowRecord, /) -> None:
        """Insert a row under its number, in place of an expired one of the same message."""
        self._insert(values_of_row(row, is_searched=self._sql.is_searched))

    def replace(self, row: RowRecord, /) -> None:
        """Replace the row of that number."""
        self._sql.change("rows.replace", values_of_row(row, is_searched=self._sql.is_searched))

    def select(self, query: RowQuery, /) -> Sequence[RowRecord]:
        """Return rows in the order asked for; touches about as many as it returns."""
        return ROWS.all(self._fetch(query))

    def exists(self, query: RowQuery, /) -> bool:
        """Tell whether any row matches."""
        return self._sql.exists(_name_of(query), {**_bounds_of(query), "limit": 1})

    def pending(self, conversation_key: int, /) -> Sequence[RowRecord]:
        """Return the rows of status `pending`, by number."""
        values = {"conversation_key": conversation_key}
        return ROWS.all(self._sql.fetch_all("rows.pending", values))

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

    def remove(self, rows: Sequence[RowRecord], /) -> None:
        """Delete these rows."""
        for row in rows:
            self._sql.delete("rows.remove", {"id": _id_of(row.conversation_key, row.seq)})

    def by_author(self, author: str, after: int, limit: int, /) -> Sequence[AuthoredRow]:
        """Return rows of an author in all conversations, by their ids."""
        values = {"author": author, "after": after, "limit": limit}
        return AUTHORED.all(self._sql.fetch_all("rows.by_author", values))

    def _fetch(self, query: RowQuery) -> Sequence[Columns]:
        return self._sql.fetch_all(_name_of(query), _bounds_of(query))

    @abc.abstractmethod
    def _insert(self, values: Values) -> None:
        """Insert a row; the way in which an expired one makes room depends on the database."""


def _id_of(conversation_key: int, seq: int) -> int:
    """Return the number of a place, or of the nearest one in that conversation."""
    return row_id(conversation_key, min(max(seq, 0), 1 << SEQ_BITS))


def _name_of(query: RowQuery) -> str:
    scope = "conversation" if query.session_key is None else "session"
    hidden = "_hidden" if query.is_shown is False else ""
    return f"rows.{scope}{hidden}_{query.order}"


def _bounds_of(query: RowQuery) -> dict[str, Any]:
    key, below = query.conversation_key, query.below
    return {
        "conversation_key": key,
        "session_key": query.session_key,
        "least_shown": query.is_shown is True,
        "above": _id_of(key, query.above or 0),
        "below": _id_of(key + 1, 0) if below is None else _id_of(key, below),
        "limit": query.limit,
        "now": query.now,
    }
