"""Kept rows: what this process has lately read or written, so that nothing is decoded twice.

A row is used again only where what is stored now equals, column by column, what it was made of. So
it cannot be older than the file, whoever has written to that.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from vitehub_chat.state.providers.sqlite.heads import Heads
from vitehub_chat.state.providers.sqlite.recall import Recall
from vitehub_chat.state.providers.sqlite.tails import Tails
from vitehub_chat.state.records import RowRecord, keep_decoded
from vitehub_chat.state.sql.columns import ROWS
from vitehub_chat.state.sql.mapping import Columns

KEPT_BYTES: Final = 16 * 1024 * 1024
"""How much is kept at most, as far as it can be estimated."""

_OVERHEAD: Final = 3072
_FACTOR: Final = 4
"""How much more memory values take than the text that they are read from."""
_LARGEST: Final = KEPT_BYTES // 16

_Key = tuple[int, int]


class _Kept(NamedTuple):  # made in a third of the time that an attrs value takes
    columns: Columns
    record: RowRecord
    size: int


class KeptRows:
    """Rows by conversation and number, the least recently used ones leave; threads may share it.

    Attributes:
        recall: The windows that were read lately; what is written or forgotten here is no more in
            them.
        tails: The newest rows as the writer knows them; who writes changes them, too.
        heads: Conversations and sessions as the writer knows them; likewise.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        """Say how many bytes are kept at most."""
        self._limit = limit
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._size = 0
        self.recall = Recall()
        self.tails = Tails()
        self.heads = Heads()

    def __len__(self) -> int:
        """Return how many rows are kept."""
        return len(self._kept)

    def records_of(self, rows: Iterable[Columns]) -> list[RowRecord]:
        """Return the records of rows that were just read, and keep them."""
        found: list[RowRecord] = []
        with self._lock:
            for columns in rows:
                key = columns[:2]
                kept = self._kept.get(key)
                if kept is not None and kept.columns == columns:
                    self._kept.move_to_end(key)
                    found.append(kept.record)
                else:
                    record = ROWS.make(columns)
                    self._put(key, columns, record)
                    found.append(record)
        return found

    def put(self, record: RowRecord, columns: Columns) -> None:
        """Keep a row that is being written; whether that is committed need not be known."""
        self.recall.clear()
        with self._lock:
            self._put(columns[:2], columns, record)

    def forget(self, rows: Sequence[RowRecord]) -> None:
        """Forget some rows."""
        self.recall.clear()
        with self._lock:
            for row in rows:
                self._drop((row.conversation_key, row.seq))

    def forget_conversation(self, conversation_key: int) -> None:
        """Forget the rows of a conversation."""
        self.recall.clear()
        with self._lock:
            for key in [key for key in self._kept if key[0] == conversation_key]:
                self._drop(key)

    def clear(self) -> None:
        """Forget everything."""
        self.recall.clear()
        self.tails.clear()
        self.heads.clear()
        with self._lock:
            self._kept.clear()
            self._size = 0

    def _put(self, key: _Key, columns: Columns, record: RowRecord) -> None:
        self._drop(key)
        size = _OVERHEAD + _FACTOR * (len(record.body) + len(record.extra or ""))
        if size > min(_LARGEST, self._limit):
            return
        keep_decoded(record, None)
        self._kept[key] = _Kept(columns, record, size)
        self._size += size
        while self._size > self._limit:
            _, oldest = self._kept.popitem(last=False)
            self._size -= oldest.size

    def _drop(self, key: _Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._size -= kept.size
