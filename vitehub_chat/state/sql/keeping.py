"""Keeping: what looks after a store in SQL, by statements that look at all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from vitehub_chat.errors import StateError
from vitehub_chat.model.clock import Clock, in_us, to_epoch_us
from vitehub_chat.model.policies import Retention
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.sql.columns import ROWS, row_id
from vitehub_chat.state.sql.mapping import Columns, Values

Ask = Callable[[Sequence[tuple[str, Values]]], Awaitable[Sequence[Sequence[Columns]]]]
"""Runs named statements in one transaction, and returns what each of them answers."""

SLICE: Final = 200
_CHANGED_AT_ONCE: Final = 1000
_TABLES: Final = ("rows", "entries", "documents")


class SqlKeeper:
    """A `Keeper` over statements; what depends on the database is left to others."""

    def __init__(self, ask: Ask, clock: Clock, raised: Sequence[str] = ()) -> None:
        """Say how to ask.

        Args:
            ask: What runs statements.
            clock: The time.
            raised: Statements that go before each change of expiries when a retention is applied.
        """
        self._ask = ask
        self._clock = clock
        self._raised = raised

    async def count_tables(self) -> Mapping[str, int]:
        """Return how many records each table has."""
        return await self._numbers("admin.counts")

    async def find_size(self) -> int | None:
        """Return how many bytes the store takes, or None if the database does not say."""
        try:
            ((row,),) = await self._ask([("admin.size", {})])
        except StateError:
            return None
        return None if row[0] is None else int(row[0])

    async def clean_up(self, now: int, /) -> Mapping[str, int]:
        """Remove all that has expired, in short transactions, and return counts by table."""
        values = {"now": now, "limit": SLICE}
        purges = [(f"{table}.purge", values) for table in _TABLES]
        before = await self._over(values)
        total = Counter(before)
        while any(before.values()):
            answers = await self._ask([*purges, ("admin.over", values)])
            left = dict(zip(_TABLES, map(int, answers[-1][0]), strict=True))
            if left == before:
                break
            before = left
        return {table: total[table] - before[table] for table in _TABLES}

    async def apply_retention(self, retention: Retention, /) -> int:
        """Give all rows the expiry of a retention, and count those that changed."""
        takes = not isinstance(retention, timedelta)
        values = {
            "keep": 0 if takes else in_us(retention),  # type: ignore[arg-type]  # a duration
            "now": to_epoch_us(self._clock.now()),
            "limit": _CHANGED_AT_ONCE,
            "besides": "value",
        }
        raised = [(name, values) for name in self._raised]
        documents = "admin.take_expiry_of_documents" if takes else "admin.give_expiry_to_documents"
        await self._ask([*raised, (documents, values)])
        count = after = 0
        while True:
            name = "admin.take_expiry" if takes else "admin.give_expiry"
            answers = await self._ask([*raised, (name, {**values, "after": after})])
            ids = [int(row[0]) for row in answers[-1]]
            if not ids:
                return count
            count, after = count + len(ids), max(ids)

    async def find_problems(self) -> Mapping[str, int]:
        """Count the records that belong to nothing, by fault."""
        return await self._numbers("admin.problems")

    async def rows_after(self, after: int, limit: int, /) -> Sequence[tuple[int, RowRecord]]:
        """Return rows of all conversations with their ids, those above an id, by id."""
        (rows,) = await self._ask([("rows.after", {"after": after, "limit": limit})])
        found = ROWS.all(map(tuple, rows))
        return [(row_id(row.conversation_key, row.seq), row) for row in found]

    async def _over(self, values: Values) -> dict[str, int]:
        ((row,),) = await self._ask([("admin.over", values)])
        return dict(zip(_TABLES, map(int, row), strict=True))

    async def _numbers(self, name: str) -> Mapping[str, int]:
        (rows,) = await self._ask([(name, {})])
        return {str(label): int(count) for label, count in rows}
