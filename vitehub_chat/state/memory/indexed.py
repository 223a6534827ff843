"""Indexed records: a mapping with sorted indexes that follow every write, and with an undo."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

_sort_value = itemgetter(0)


class Journal:
    """The inverses of the writes of one step, in the order of the writes."""

    def __init__(self) -> None:
        self._inverses: list[Callable[[], None]] = []

    def note(self, inverse: Callable[[], None]) -> None:
        """Remember how to undo a write that is about to happen."""
        self._inverses.append(inverse)

    def commit(self) -> None:
        """Forget how to undo: the writes stay."""
        self._inverses.clear()

    def rollback(self) -> None:
        """Undo all noted writes, the last one first."""
        while self._inverses:
            self._inverses.pop()()


class Counter:
    """Consecutive numbers from 1; undone numbers are given out again."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._last = 0

    def next(self) -> int:
        """Return the next number."""
        self._journal.note(partial(self._set, self._last))
        self._last += 1
        return self._last

    def _set(self, last: int) -> None:
        self._last = last


class Index(Generic[K, R]):
    """The keys of records in groups, each group sorted; a group without records does not exist."""

    def __init__(self, groups: Callable[[R], Iterable[Hashable]], sort: Callable[[R], Any]) -> None:
        """Say to which groups a record belongs, and by what it is sorted there, then by key."""
        self._groups_of = groups
        self._sort_of = sort
        self._groups: dict[Hashable, list[tuple[Any, K]]] = {}

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self._groups)

    def keys(self, group: Hashable, /) -> Sequence[K]:
        """Return the keys of a group in order."""
        return [key for _, key in self._groups.get(group, ())]

    def first(self, group: Hashable, /) -> K | None:
        """Return the first key of a group, or None."""
        places = self._groups.get(group)
        return places[0][1] if places else None

    def last(self, group: Hashable, /) -> K | None:
        """Return the last key of a group, or None."""
        places = self._groups.get(group)
        return places[-1][1] if places else None

    def count(self, group: Hashable, /) -> int:
        """Count the records of a group."""
        return len(self._groups.get(group, ()))

    def count_through(self, group: Hashable, value: Any, /) -> int:
        """Count the records of a group that are sorted by `value` or less."""
        return bisect_right(self._groups.get(group, ()), value, key=_sort_value)

    def between(
        self, group: Hashable, /, *, above: Any = None, below: Any = None, descending: bool = False
    ) -> Iterator[K]:
        """Yield the keys sorted strictly between two values; None is no bound."""
        places = self._groups.get(group, ())
        start = 0 if above is None else bisect_right(places, above, key=_sort_value)
        stop = len(places) if below is None else bisect_left(places, below, key=_sort_value)
        positions = range(start, stop)
        for position in reversed(positions) if descending else positions:
            yield places[position][1]

    def move(self, key: K, old: R | None, new: R | None) -> None:
        """Follow a write: `old` was there or None, `new` is there or None."""
        before, after = self._places(key, old), self._places(key, new)
        if before == after:
            return
        for group, place in before:
            places = self._groups[group]
            del places[bisect_left(places, place)]
            if not places:
                del self._groups[group]
        for group, place in after:
            insort(self._groups.setdefault(group, []), place)

    def _places(self, key: K, record: R | None) -> list[tuple[Hashable, tuple[Any, K]]]:
        if record is None:
            return []
        place = (self._sort_of(record), key)
        return [(group, place) for group in self._groups_of(record)]


class Indexed(Generic[K, R]):
    """Records by key."""

    def __init__(self, journal: Journal, *indexes: Index[K, R]) -> None:
        self._journal = journal
        self._indexes = indexes
        self._records: dict[K, R] = {}

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: K | None, /) -> R | None:
        """Return a record, or None."""
        return None if key is None else self._records.get(key)

    def keys(self) -> list[K]:
        """Return the keys of all records."""
        return list(self._records)

    def all(self, keys: Iterable[K], /) -> list[R]:
        """Return the records of keys that exist."""
        return [self._records[key] for key in keys]

    def values(self) -> list[R]:
        """Return all records."""
        return list(self._records.values())

    def put(self, key: K, record: R, /) -> None:
        """Insert or replace a record."""
        self._journal.note(partial(self._write, key, self._records.get(key)))
        self._write(key, record)

    def replace(self, key: K, record: R, /) -> None:
        """Replace a record; no-op if there is none."""
        if key in self._records:
            self.put(key, record)

    def remove(self, key: K, /) -> None:
        """Remove a record; no-op if there is none."""
        if key in self._records:
            self._journal.note(partial(self._write, key, self._records[key]))
            self._write(key, None)

    def _write(self, key: K, record: R | None) -> None:
        old = self._records.pop(key, None)
        if record is not None:
            self._records[key] = record
        for index in self._indexes:
            index.move(key, old, record)
