"""Visible rows: those that reading gives, without what is too old, with what was superseded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from vitehub_chat.errors import StateError
from vitehub_chat.model.clock import to_epoch_us
from vitehub_chat.model.messages import Message
from vitehub_chat.model.rows import Row
from vitehub_chat.model.units import split_units
from vitehub_chat.state.codec import decode_row
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.row_requests import AgeLimit
from vitehub_chat.state.steps.aside import superseded_rows
from vitehub_chat.state.steps.granting import live_lock
from vitehub_chat.state.tables import RowQuery, Transaction
from vitehub_chat.state.values import RowBatch

Cursors = Callable[[int], str]
"""Gives the cursor of a number."""

FIRST_SLICE: Final = 200
"""How many rows are read first where it is not known how many are needed."""
_GROWTH: Final = 4
NEIGHBOURS: Final = 100
"""Among how many rows what belongs to the tool calls of an old one is looked for."""


@attrs.define
class VisibleRows:
    """The rows of a scope that reading gives, in order.

    Attributes:
        base: The query for all of them.
        age: What is too old, or None.
        home: The encoded key of the conversation, to read what was superseded in it, or None.
    """

    tx: Transaction
    base: RowQuery
    age: AgeLimit | None = None
    home: str | None = None
    _superseded: set[int] = attrs.field(factory=set, init=False)
    _unreadable: set[int] = attrs.field(factory=set, init=False)

    def older(self, below: int | None, limit: int) -> list[RowRecord]:
        """Return the last rows below a number, ascending."""
        query = attrs.evolve(self.base, below=below, order="descending", limit=limit)
        return list(reversed(self.select(query)))

    def newer(self, above: int, limit: int) -> list[RowRecord]:
        """Return the first rows above a number, ascending."""
        return self.select(attrs.evolve(self.base, above=above, limit=limit))

    def exists(self, *, above: int | None = None, below: int | None = None) -> bool:
        """Tell whether there is a row strictly between two numbers."""
        query = attrs.evolve(self.base, above=above, below=below, limit=1)
        if self.age is None and self.home is None:
            return self.tx.rows.exists(query)
        return bool(self.select(query))

    def select(self, query: RowQuery) -> list[RowRecord]:
        """Return rows in the order asked for."""
        if self.age is None:
            return self._read(query)
        found: list[RowRecord] = []
        seen: list[RowRecord] = []
        for rows in self._slices(query, query.limit):
            found.extend(drop_old(rows, self.age, seen[-NEIGHBOURS:]))
            if len(found) >= query.limit:
                break
            seen.extend(rows)
        return found[: query.limit]

    def slices(self, above: int) -> Iterator[list[RowRecord]]:
        """Yield all rows above a number, ascending, in lists that grow."""
        query = attrs.evolve(self.base, above=above)
        seen: list[RowRecord] = []
        for rows in self._slices(query, FIRST_SLICE):
            yield drop_old(rows, self.age, seen[-NEIGHBOURS:])
            seen = rows

    def decode(self, records: Sequence[RowRecord], cursor: Cursors | None = None) -> RowBatch:
        """Decode rows and name those that cannot be read; a direct read of one raises."""
        batch = decode_readable(self.tx, records, self.base.now, cursor)
        if not self._superseded and not self._unreadable:
            return batch
        rows = (attrs.evolve(r, is_superseded=r.seq in self._superseded) for r in batch.rows)
        unreadable = tuple(sorted({*batch.unreadable, *self._unreadable}))
        return RowBatch(rows=tuple(rows), unreadable=unreadable)

    def _slices(self, query: RowQuery, size: int) -> Iterator[list[RowRecord]]:
        while True:
            rows = self._read(attrs.evolve(query, limit=size))
            yield rows
            if len(rows) < size or not rows:
                return
            end = rows[-1].seq
            is_down = query.order == "descending"
            query = attrs.evolve(query, below=end) if is_down else attrs.evolve(query, above=end)
            size = max(size, FIRST_SLICE) * _GROWTH

    def _read(self, query: RowQuery) -> list[RowRecord]:
        rows = list(self.tx.rows.select(query))
        if self.home is None:
            return rows
        others, unreadable = superseded_rows(self.tx, self.home, query)
        self._unreadable |= unreadable
        self._superseded.update(row.seq for row in others)
        both = sorted([*rows, *others], key=lambda r: r.seq, reverse=query.order == "descending")
        return both[: query.limit]


def drop_old(
    rows: list[RowRecord], age: AgeLimit | None, neighbours: Sequence[RowRecord] = ()
) -> list[RowRecord]:
    """Return rows without those that are too old, in their order.

    What a tool call and its results share goes or stays together, as far as it is among these and
    the neighbours.
    """
    if age is None:
        return rows
    since = to_epoch_us(age.since)
    old = {row.seq for row in rows if _is_old(row, since, age)}
    if not old:
        return rows
    all_old = old | {row.seq for row in neighbours if _is_old(row, since, age)}
    around = sorted([*rows, *neighbours], key=lambda row: row.seq)
    for unit in split_units([message_of(row) for row in around]):
        seqs = {row.seq for row in around[unit.start : unit.stop]}
        if len(seqs) > 1 and not seqs <= all_old:
            old -= seqs
    return [row for row in rows if row.seq not in old]


def decode_readable(
    tx: Transaction, records: Sequence[RowRecord], now: int, cursor: Cursors | None = None
) -> RowBatch:
    """Decode rows and name those that cannot be read; `cursor` gives their positions for pages."""
    rows: list[Row] = []
    unreadable: list[int] = []
    for record in records:
        try:
            rows.append(decode(tx, record, now, "" if cursor is None else cursor(record.seq)))
        except StateError:
            unreadable.append(record.seq)
    return RowBatch(rows=tuple(rows), unreadable=tuple(unreadable))


def decode(tx: Transaction, record: RowRecord, now: int, cursor: str = "") -> Row:
    """Decode a row; an answer whose turn died counts as interrupted.

    Raises:
        StateError: It cannot be read (`corrupt`).
    """
    if record.status == "pending" and not is_growing(tx, record, now):
        record = attrs.evolve(record, status="interrupted")
    return decode_row(record, cursor)


def is_growing(tx: Transaction, record: RowRecord, now: int) -> bool:
    """Tell whether a row is the answer of a turn that runs."""
    if record.status != "pending" or record.fence_key is None:
        return False
    lock = live_lock(tx, record.fence_key, now)
    return lock is not None and lock.token == record.fence_token


def message_of(record: RowRecord) -> Message:
    """Return the message of a row; of one that cannot be read an empty one, which binds nothing."""
    try:
        return decode_row(record).message
    except StateError:
        return Message(record.message_id, record.role, ())


def said_at(row: RowRecord) -> int:
    """Return when a row was said, or recorded if that is not known."""
    return row.recorded_at if row.created_at is None else row.created_at


def _is_old(row: RowRecord, since: int, age: AgeLimit) -> bool:
    if said_at(row) >= since:
        return False
    return not (age.spares_system and row.role == "system")
