"""Tails: the newest rows of conversations as the writer knows them, so that no window is asked for.

All that this process writes goes through one connection, which changes the tails with the file.
Whether another process has written it learns at the begin of every transaction, before which
nobody can write any more; then every tail is dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import attrs

from vitehub_chat.model.forking import ForkSafeLock
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.tables import RowQuery

TAIL_BYTES: Final = 8 * 1024 * 1024
"""How much the tails of all conversations count as; their rows are kept rows in most cases."""

_OVERHEAD: Final = 512
_LONGEST: Final = 400
_SHORTENED: Final = 200
_MOST_WANTED: Final = 1024


@attrs.define
class _Tail:
    """The newest rows of one conversation.

    Attributes:
        floor: Every row above this number is among them.
        since: The time at which they were read, in microseconds; they say nothing of earlier ones.
        rows: The rows by number, ascending.
        size: How much they count as.
        expires: Whether any of them may have expired.
    """

    floor: int
    since: int
    rows: dict[int, RowRecord] = attrs.field(factory=dict)
    size: int = 0
    expires: bool = False

    def put(self, row: RowRecord) -> None:
        self.drop(row.seq)
        self.rows[row.seq] = row
        self.size += _size_of(row)
        self.expires = self.expires or row.expires_at is not None

    def replace(self, row: RowRecord) -> None:
        self.size += _size_of(row) - _size_of(self.rows[row.seq])
        self.rows[row.seq] = row
        self.expires = self.expires or row.expires_at is not None

    def drop(self, seq: int) -> None:
        row = self.rows.pop(seq, None)
        self.size -= 0 if row is None else _size_of(row)

    def shorten(self) -> None:
        for seq in list(self.rows)[:-_SHORTENED]:
            self.drop(seq)
            self.floor = seq

    def select(self, query: RowQuery) -> list[RowRecord] | None:
        """Return what a query for the newest rows finds, or None if there may be more."""
        if query.now < self.since:
            return None
        found: list[RowRecord] = []
        for row in self._matching(query):
            if len(found) == query.limit:
                break
            found.append(row)
        is_all = len(found) == query.limit or self.floor <= (query.above or 0)
        return found if is_all else None

    def _matching(self, query: RowQuery) -> Iterator[RowRecord]:
        above, session_key, is_shown = query.above or 0, query.session_key, query.is_shown
        for seq, row in reversed(self.rows.items()):
            if seq <= above:
                return
            if (
                (query.below is None or seq < query.below)
                and (session_key is None or row.session_key == session_key)
                and (is_shown is None or row.is_shown == is_shown)
                and (row.expires_at is None or row.expires_at > query.now)
            ):
                yield row


class Tails:
    """Tails by conversation; those used least recently leave. Any thread may clear them."""

    def __init__(self, limit: int = TAIL_BYTES) -> None:
        """Say how much they may count as altogether."""
        self._limit = limit
        self._lock = ForkSafeLock()
        self._version: Hashable = None
        self._tails: OrderedDict[int, _Tail] = OrderedDict()
        self._size = 0
        self._touched: set[int] = set()
        self._wanted: set[int] = set()

    def __len__(self) -> int:
        """Return how many conversations have one."""
        return len(self._tails)

    def begin(self, version: Hashable) -> None:
        """Begin a transaction on a version of the file; another one drops all."""
        with self._lock:
            self._touched.clear()
            if version != self._version:
                self._version = version
                self._drop_all()

    def undo(self) -> None:
        """Drop what the transaction has changed, because that is undone."""
        with self._lock:
            for key in self._touched:
                self._drop(key)

    def clear(self) -> None:
        """Drop all."""
        with self._lock:
            self._drop_all()

    def is_long_enough(self, query: RowQuery) -> bool:
        """Tell whether as many rows are known as a query wants, or all above its bound."""
        tail = self._tails.get(query.conversation_key)
        if tail is None:
            return False
        return len(tail.rows) >= query.limit or tail.floor <= (query.above or 0)

    def want(self, conversation_key: int) -> None:
        """Note that somebody reads windows of a conversation, until its tail is learned."""
        if len(self._wanted) >= _MOST_WANTED:
            self._wanted.clear()
        self._wanted.add(conversation_key)

    def is_wanted(self, conversation_key: int) -> bool:
        """Tell whether a tail is to be learned with the next row."""
        return conversation_key in self._wanted

    def select(self, query: RowQuery) -> list[RowRecord] | None:
        """Return what a query for the newest rows finds, or None if it has to be asked."""
        with self._lock:
            tail = self._tails.get(query.conversation_key)
            if tail is None:
                return None
            self._tails.move_to_end(query.conversation_key)
            return tail.select(query)

    def learn(self, query: RowQuery, rows: Sequence[RowRecord]) -> None:
        """Keep the newest rows of a whole conversation, the last of them first."""
        floor = rows[-1].seq - 1 if len(rows) >= query.limit and rows else query.above or 0
        tail = _Tail(floor, query.now)
        for row in reversed(rows):
            tail.put(row)
        with self._lock:
            self._wanted.discard(query.conversation_key)
            self._drop(query.conversation_key)
            self._put(query.conversation_key, tail)

    def insert(self, row: RowRecord) -> None:
        """Add a row that was inserted, in place of an expired one of the same message."""
        with self._lock:
            tail = self._change(row.conversation_key)
            if tail is None:
                return
            if tail.rows and row.seq <= next(reversed(tail.rows)):
                return  # it is dropped: only what comes last is added
            if tail.expires:
                for other in [each for each in tail.rows.values() if _is_twin(each, row)]:
                    tail.drop(other.seq)
            tail.put(row)
            if len(tail.rows) > _LONGEST:
                tail.shorten()
            self._put(row.conversation_key, tail)

    def replace(self, row: RowRecord) -> None:
        """Replace a row by its number."""
        with self._lock:
            tail = self._change(row.conversation_key)
            if tail is None:
                return
            if row.seq in tail.rows:
                tail.replace(row)
            elif row.seq > tail.floor:
                return  # it is dropped: that row had expired
            self._put(row.conversation_key, tail)

    def remove(self, rows: Sequence[RowRecord]) -> None:
        """Remove rows."""
        with self._lock:
            for row in rows:
                tail = self._change(row.conversation_key)
                if tail is not None:
                    tail.drop(row.seq)
                    self._put(row.conversation_key, tail)

    def drop(self, conversation_key: int) -> None:
        """Drop the tail of a conversation."""
        with self._lock:
            self._change(conversation_key)

    def _change(self, key: int) -> _Tail | None:
        """Take a tail out, to be changed and put back."""
        self._touched.add(key)
        return self._drop(key)

    def _put(self, key: int, tail: _Tail) -> None:
        if tail.size > self._limit // 8:
            return
        self._tails[key] = tail
        self._size += tail.size
        while self._size > self._limit:
            self._drop(next(iter(self._tails)))

    def _drop(self, key: int) -> _Tail | None:
        tail = self._tails.pop(key, None)
        self._size -= 0 if tail is None else tail.size
        return tail

    def _drop_all(self) -> None:
        self._tails.clear()
        self._size = 0


def _size_of(row: RowRecord) -> int:
    return _OVERHEAD + len(row.body) + len(row.extra or "")


def _is_twin(one: RowRecord, other: RowRecord) -> bool:
    return one.message_id == other.message_id and one.seq != other.seq
