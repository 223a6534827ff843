"""Keeping: what looks after a store in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from datetime import timedelta

import attrs

from vitehub_chat.model.clock import Clock, in_us, to_epoch_us
from vitehub_chat.model.policies import Retention
from vitehub_chat.state.memory.store import MemoryStore, MemoryTables
from vitehub_chat.state.records import RowRecord

_ALL = 1 << 62


class MemoryKeeper:
    """A `Keeper` of a store in memory."""

    def __init__(self, open_store: Callable[[], MemoryStore], clock: Clock) -> None:
        """Say what gives the store, if it is open."""
        self._store = open_store
        self._clock = clock

    async def find_versions(self) -> tuple[int, int]:
        """Return the same version twice: what is in memory was made by this release."""
        return 1, 1

    async def count_tables(self) -> Mapping[str, int]:
        """Return how many records each table has."""
        return self._store().read(lambda tables: {n: len(t) for n, t in _tables_of(tables)})

    async def find_size(self) -> int | None:
        """Return None: nobody knows."""
        return None

    async def clean_up(self, now: int, /) -> Mapping[str, int]:
        """Remove all that has expired, and return counts by table."""
        return self._store().write(
            lambda tables: {
                "rows": tables.rows.purge(now, _ALL),
                "entries": tables.entries.purge(now, _ALL),
                "documents": tables.documents.purge(now, _ALL),
            }
        )

    async def apply_retention(self, retention: Retention, /) -> int:
        """Give all rows the expiry of a retention, and count those that changed."""
        keep = in_us(retention) if isinstance(retention, timedelta) else None
        now = to_epoch_us(self._clock.now())
        return self._store().write(lambda tables: _apply(tables, keep, now))

    async def find_problems(self) -> Mapping[str, int]:
        """Count the records that belong to nothing, by fault."""
        return self._store().read(_find_problems)

    async def rows_after(self, row_id: int, limit: int, /) -> Sequence[tuple[int, RowRecord]]:
        """Return rows of all conversations with their ids, those above an id, by id."""
        return self._store().read(lambda tables: tables.rows.after(row_id, limit))

    async def wipe(self) -> None:
        """Do nothing: what was deleted is gone."""


def _tables_of(tables: MemoryTables) -> Sequence[tuple[str, Sized]]:
    names = ("locks", "entries", "conversations", "sessions", "rows", "summaries", "documents")
    return [(name, getattr(tables, name)) for name in names]


def _apply(tables: MemoryTables, keep: int | None, now: int) -> int:
    changed = 0
    for _, row in tables.rows.after(0, _ALL):
        expires_at = row.expires_at
        if keep is None and expires_at is not None and expires_at > now:
            tables.rows.replace(attrs.evolve(row, expires_at=None))
            changed += 1
        elif keep is not None and expires_at is None:
            tables.rows.replace(attrs.evolve(row, expires_at=row.recorded_at + keep))
            changed += 1
    tables.documents.apply_retention(keep, now)
    return changed


def _find_problems(tables: MemoryTables) -> Mapping[str, int]:
    rows = [row for _, row in tables.rows.after(0, _ALL)]
    return {
        "rows_without_session": sum(tables.sessions.get(row.session_key) is None for row in rows)
    }
