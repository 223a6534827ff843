"""Statements: named SQL on one connection, and records made of what it returns."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

import attrs

R = TypeVar("R")

Values = Mapping[str, Any]


class Statements:
    """The named statements of a store on one connection.

    Attributes:
        has_deleted: Whether content was deleted since this was last set to False.
    """

    def __init__(self, connection: sqlite3.Connection, texts: Mapping[str, str]) -> None:
        self._connection = connection
        self._texts = texts
        self.has_deleted = False

    def execute(self, name: str, values: Values) -> sqlite3.Cursor:
        """Run one statement."""
        return self._connection.execute(self._texts[name], values)

    def fetch(self, name: str, values: Values) -> tuple[Any, ...] | None:
        """Run one statement and return its first row, or None."""
        row: tuple[Any, ...] | None = self.execute(name, values).fetchone()
        return row

    def fetch_existing(self, name: str, values: Values) -> tuple[Any, ...]:
        """Run one statement and return its first row.

        Raises:
            KeyError: There is none.
        """
        row = self.fetch(name, values)
        if row is None:
            raise KeyError(name)
        return row

    def exists(self, name: str, values: Values) -> bool:
        """Tell whether a query has any row, without reading one."""
        found = self._connection.execute(f"SELECT EXISTS ({self._texts[name]})", values)
        return bool(found.fetchone()[0])

    def delete(self, name: str, values: Values) -> int:
        """Run a statement that deletes content and return how many rows it deleted."""
        count = self.execute(name, values).rowcount
        self.has_deleted = self.has_deleted or count > 0
        return count


class Records(Generic[R]):
    """How records of one kind become values of statements and are made of rows."""

    def __init__(self, kind: Callable[..., R], facts: Sequence[str] = ()) -> None:
        """Say what is made, from columns in the order of its fields, and which fields are bools."""
        self._kind = kind
        self._names = tuple(field.name for field in attrs.fields(cast("Any", kind)))
        self._facts = tuple(self._names.index(name) for name in facts)

    def values_of(self, record: R) -> dict[str, Any]:
        """Return the fields of a record by name."""
        return {name: getattr(record, name) for name in self._names}

    def one(self, row: tuple[Any, ...] | None) -> R | None:
        """Return the record of a row, or None without one."""
        return None if row is None else self._make(row)

    def all(self, rows: Iterable[tuple[Any, ...]]) -> list[R]:
        """Return the records of rows."""
        return [self._make(row) for row in rows]

    def _make(self, row: tuple[Any, ...]) -> R:
        fields = dict(zip(self._names, row, strict=True))
        for position in self._facts:
            fields[self._names[position]] = bool(row[position])
        return self._kind(**fields)
