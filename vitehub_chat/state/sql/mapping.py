"""Mapping: records become values of statements, and are made of what a database returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar, cast

import attrs

from vitehub_chat.model.filling import Filler

R = TypeVar("R")

Values = Mapping[str, Any]
Columns = tuple[Any, ...]


class Statements(Protocol):
    """The named statements of a store on one connection.

    Attributes:
        is_searched: Whether the texts of rows are kept for search.
    """

    is_searched: bool

    def fetch(self, name: str, values: Values, /) -> Columns | None:
        """Run one statement and return its first row, or None."""

    def fetch_existing(self, name: str, values: Values, /) -> Columns:
        """Run one statement and return its first row.

        Raises:
            KeyError: There is none.
        """

    def fetch_all(self, name: str, values: Values, /) -> Sequence[Columns]:
        """Run one statement and return its rows."""

    def exists(self, name: str, values: Values, /) -> bool:
        """Tell whether a query has any row, without reading one."""

    def change(self, name: str, values: Values, /) -> int:
        """Run one statement and return how many rows it changed."""

    def delete(self, name: str, values: Values, /) -> int:
        """Run a statement that deletes content and return how many rows it deleted."""


class Records(Generic[R]):
    """How records of one kind become values of statements and are made of rows."""

    def __init__(self, kind: type[R], facts: Sequence[str] = ()) -> None:
        """Say what is made, from columns in the order of its fields, and which fields are bools."""
        self._filler = Filler(kind)
        self._names = tuple(field.name for field in attrs.fields(cast("Any", kind)))
        self._read = attrgetter(*self._names)
        self._facts = tuple(self._names.index(name) for name in facts)

    def values_of(self, record: R) -> dict[str, Any]:
        """Return the fields of a record by name."""
        return dict(zip(self._names, self._read(record), strict=True))

    def one(self, row: Columns | None) -> R | None:
        """Return the record of a row, or None without one."""
        return None if row is None else self.make(row)

    def all(self, rows: Iterable[Columns]) -> list[R]:
        """Return the records of rows."""
        return [self.make(row) for row in rows]

    def columns_of(self, record: R) -> Columns:
        """Return the fields of a record as a row has them."""
        columns: Columns = self._read(record)
        return columns

    def make(self, row: Columns) -> R:
        """Return the record of a row."""
        if not self._facts:
            return self._filler.fill(row)
        fields = list(row)
        for position in self._facts:
            fields[position] = bool(row[position])
        return self._filler.fill(fields)
