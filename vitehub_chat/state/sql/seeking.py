"""Seeking: search over the texts of stored messages, in SQL."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.seeking import Candidate, TextQuery, search_text_of
from vitehub_chat.state.sql.columns import ROWS, row_id
from vitehub_chat.state.sql.keeping import Ask
from vitehub_chat.state.sql.mapping import Values

_ALL: Final = 2**62
_SENT_AT_ONCE: Final = 1_000_000
"""How many characters are sent at once, about."""


class SqlSeeker:
    """A `Seeker` over statements."""

    def __init__(self, read: Ask, write: Ask) -> None:
        """Say how to run statements that read, and such that write."""
        self._read = read
        self._write = write

    async def find(self, query: TextQuery, /) -> Sequence[Candidate]:
        """Return rows in whose text all words occur, and those of which that is not known."""
        (rows,) = await self._read([("rows.search", _values_of(query))])
        return [Candidate(ROWS.make(tuple(row[:-1])), bool(row[-1])) for row in rows]

    async def keep(self, rows: Sequence[RowRecord], /) -> int:
        """Keep the texts of rows that have none yet; one that has changed meanwhile is left."""
        count = 0
        for slice_ in _slices(sorted(rows, key=_id)):
            await self._write([("rows.keep_search_text", values) for values in slice_])
            count += len(slice_)
        return count

    async def after(self, after: int, limit: int, /) -> Sequence[tuple[int, RowRecord]]:
        """Return rows of all conversations without a kept text, with their ids, by id."""
        (rows,) = await self._read([("rows.unsearched", {"after": after, "limit": limit})])
        return [(_id(row), row) for row in ROWS.all(map(tuple, rows))]


def _values_of(query: TextQuery) -> dict[str, Any]:
    return {
        "sessions": json.dumps(query.sessions),
        "words": json.dumps(query.words, ensure_ascii=False),
        "role": query.role,
        "after": query.after,
        "before": query.before,
        "since": query.since,
        "spared_role": query.spared_role,
        "below": _ALL if query.below is None else query.below,
        "limit": query.limit,
        "now": query.now,
    }


def _slices(rows: Sequence[RowRecord]) -> Iterator[Sequence[Values]]:
    """Yield what is written of rows that have a text to keep, as much as is sent at once."""
    slice_: list[Values] = []
    size = 0
    for row in rows:
        text = search_text_of(row)
        if text is None:
            continue
        slice_.append({"id": _id(row), "body": row.body, "search_text": text})
        size += len(text) + len(row.body)
        if size > _SENT_AT_ONCE:
            yield slice_
            slice_, size = [], 0
    if slice_:
        yield slice_


def _id(row: RowRecord) -> int:
    return row_id(row.conversation_key, row.seq)
