"""Seeking: search over stored messages in memory, which are read each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from vitehub_chat.model.folding import contains_all
from vitehub_chat.state.memory.store import MemoryStore, MemoryTables
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.seeking import Candidate, TextQuery, folded_text_of
from vitehub_chat.state.tables import RowQuery


class MemorySeeker:
    """A `Seeker` that looks at every message: nothing has to be kept for it."""

    def __init__(self, open_store: Callable[[], MemoryStore]) -> None:
        """Say what gives the store, if it is open."""
        self._store = open_store

    async def find(self, query: TextQuery, /) -> Sequence[Candidate]:
        """Return rows in whose text all words occur."""
        return self._store().read(
            lambda tables: [
                Candidate(row, is_indexed=True)
                for row in islice(_matching(tables, query), query.limit)
            ]
        )

    async def keep(self, _rows: Sequence[RowRecord], /) -> int:
        """Do nothing."""
        return 0

    async def after(self, _after: int, _limit: int, /) -> Sequence[tuple[int, RowRecord]]:
        """Return nothing."""
        return ()


def _matching(tables: MemoryTables, query: TextQuery) -> Iterator[RowRecord]:
    for place, session_key in enumerate(query.sessions):
        for row in _rows(tables, session_key, query.below if place == 0 else None, query.now):
            if query.admits(row) and contains_all(folded_text_of(row), query.words):
                yield row


def _rows(
    tables: MemoryTables, session_key: int, below: int | None, now: int
) -> Sequence[RowRecord]:
    session = tables.sessions.get(session_key)
    if session is None:
        return ()
    return tables.rows.select(
        RowQuery(
            conversation_key=session.conversation_key,
            session_key=session_key,
            below=below,
            order="descending",
            limit=max(session.message_count, 1),
            now=now,
        )
    )
