"""The table of stored messages, in memory."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import islice, product

import attrs

from vitehub_chat.state.memory.conversations import MemoryConversations
from vitehub_chat.state.memory.indexed import Index, Indexed, Journal
from vitehub_chat.state.records import AuthoredRow, RowRecord
from vitehub_chat.state.tables import RowQuery

_Place = tuple[int, int]
_ALL_EXPIRING = "expiring"
"""The one group of the rows that have an expiry."""
_ALL_ROWS = "rows"
"""The one group of all rows."""


class MemoryRows:
    """Stored messages by conversation and number."""

    def __init__(self, journal: Journal, conversations: MemoryConversations) -> None:
        self._conversations = conversations
        self._authors: Index[_Place, RowRecord] = Index(_of_author, _id_of)
        self._ids: Index[_Place, RowRecord] = Index(lambda _: [_ALL_ROWS], _id_of)
        self._messages: Index[_Place, RowRecord] = Index(_of_message, _seq)
        self._selections: Index[_Place, RowRecord] = Index(_queries, _seq)
        self._pending: Index[_Place, RowRecord] = Index(_of_pending, _seq)
        self._expiring: Index[_Place, RowRecord] = Index(_of_expiring, _expiry)
        self._rows: Indexed[_Place, RowRecord] = Indexed(
            journal,
            self._ids,
            self._messages,
            self._selections,
            self._pending,
            self._expiring,
            self._authors,
        )

    def __len__(self) -> int:
        return len(self._rows)

    def by_message(self, conversation_key: int, message_id: str, now: int, /) -> RowRecord | None:
        """Return the row of a message id."""
        row = self._rows.get(self._messages.last((conversation_key, message_id)))
        return None if row is None or _is_expired(row, now) else row

    def insert(self, row: RowRecord, /) -> None:
        """Insert a row under its number, in place of an expired one of the same message."""
        twin = self._messages.last((row.conversation_key, row.message_id))
        if twin is not None:
            self._rows.remove(twin)
        self._rows.put((row.conversation_key, row.seq), row)

    def replace(self, row: RowRecord, /) -> None:
        """Replace the row of that number."""
        self._rows.replace((row.conversation_key, row.seq), row)

    def select(self, query: RowQuery, /) -> Sequence[RowRecord]:
        """Return rows in the order asked for; touches those it returns and expired ones."""
        keys = self._selections.between(
            (query.conversation_key, query.session_key, query.is_shown),
            above=query.above,
            below=query.below,
            descending=query.order == "descending",
        )
        found = map(self._rows.get, keys)
        live = (row for row in found if row is not None and not _is_expired(row, query.now))
        return list(islice(live, query.limit))

    def exists(self, query: RowQuery, /) -> bool:
        """Tell whether any row matches."""
        return bool(self.select(attrs.evolve(query, limit=1)))

    def pending(self, conversation_key: int, /) -> Sequence[RowRecord]:
        """Return the rows of status `pending`, by number."""
        return self._rows.all(self._pending.keys(conversation_key))

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        """Delete the rows of a conversation, or of one of its sessions, and count them."""
        # The last one first: cutting off the end of a sorted list moves nothing.
        return self._delete_all(
            reversed(self._selections.keys((conversation_key, session_key, None)))
        )

    def remove(self, rows: Sequence[RowRecord], /) -> None:
        """Delete these rows."""
        self._delete_all((row.conversation_key, row.seq) for row in reversed(rows))

    def by_author(self, author: str, after: int, limit: int, /) -> Sequence[AuthoredRow]:
        """Return rows of an author in all conversations, by their ids."""
        found = self._rows.all(islice(self._authors.between(author, above=after), limit))
        return [
            AuthoredRow(
                id=_id_of(row),
                conversation=self._conversations.encoded(row.conversation_key),
                message_id=row.message_id,
            )
            for row in found
        ]

    def after(self, row_id: int, limit: int, /) -> Sequence[tuple[int, RowRecord]]:
        """Return rows of all conversations with their ids, those above an id, by id."""
        keys = islice(self._ids.between(_ALL_ROWS, above=row_id), limit)
        return [(_id_of(row), row) for row in self._rows.all(keys)]

    def purge(self, now: int, limit: int, /) -> int:
        """Delete at most `limit` expired rows."""
        expired = self._expiring.between(_ALL_EXPIRING, below=now + 1)
        return self._delete_all(list(islice(expired, limit)))

    def keep_forever(self) -> None:
        """Let no row expire, those already past their time included."""
        for row in self._rows.all(self._expiring.keys(_ALL_EXPIRING)):
            self.replace(attrs.evolve(row, expires_at=None))

    def _delete_all(self, keys: Iterable[_Place]) -> int:
        deleted = 0
        for key in keys:
            self._rows.remove(key)
            deleted += 1
        return deleted


def _seq(row: RowRecord) -> int:
    return row.seq


def _id_of(row: RowRecord) -> int:
    return (row.conversation_key << 32) + row.seq


def _of_author(row: RowRecord) -> Iterable[Hashable]:
    return [] if row.author is None else [row.author]


def _expiry(row: RowRecord) -> int | None:
    return row.expires_at


def _is_expired(row: RowRecord, now: int) -> bool:
    return row.expires_at is not None and row.expires_at <= now


def _of_message(row: RowRecord) -> Iterable[Hashable]:
    return [(row.conversation_key, row.message_id)]


def _queries(row: RowRecord) -> Iterable[Hashable]:
    """Belong to every query that finds it: whole conversation or session, shown or both."""
    return product([row.conversation_key], [None, row.session_key], [None, row.is_shown])


def _of_pending(row: RowRecord) -> Iterable[Hashable]:
    return [row.conversation_key] if row.status == "pending" else []


def _of_expiring(row: RowRecord) -> Iterable[Hashable]:
    return [] if row.expires_at is None else [_ALL_EXPIRING]
