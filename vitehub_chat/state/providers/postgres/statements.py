"""Statements: named SQL on one connection."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import psycopg

from vitehub_chat.state.sql.mapping import Columns, Values
from vitehub_chat.state.sql.named import load_statements

_PARAMETER: Final = re.compile(r"(?<!:):([a-z_]+)")
_HASH: Final = "_hash"
_ABSENT: Final = b"\xff"  # in no UTF-8 text


@attrs.frozen
class Statement:
    """A text as the driver takes it.

    Attributes:
        text: The statement, with the parameters of the driver.
        hashed: The values that it wants the hashes of, too.
    """

    text: bytes
    hashed: tuple[str, ...]

    def bind(self, values: Values) -> Values:
        """Return the values of its parameters."""
        if not self.hashed:
            return values
        return {**values, **{name + _HASH: hash_of(values[name]) for name in self.hashed}}


class Statements:
    """The named statements of a store on one connection."""

    def __init__(self, cursor: psycopg.Cursor[Columns], texts: Mapping[str, Statement]) -> None:
        self._cursor = cursor
        self._texts = texts

    def fetch(self, name: str, values: Values) -> Columns | None:
        """Run one statement and return its first row, or None."""
        return self._run(name, values).fetchone()

    def fetch_existing(self, name: str, values: Values) -> Columns:
        """Run one statement and return its first row.

        Raises:
            KeyError: There is none.
        """
        row = self.fetch(name, values)
        if row is None:
            raise KeyError(name)
        return row

    def fetch_all(self, name: str, values: Values) -> Sequence[Columns]:
        """Run one statement and return its rows."""
        return self._run(name, values).fetchall()

    def exists(self, name: str, values: Values) -> bool:
        """Tell whether a query has any row, without reading one."""
        statement = self._texts[name]
        query = b"SELECT EXISTS (" + statement.text + b")"
        row = self._cursor.execute(query, statement.bind(values)).fetchone()
        return row is not None and bool(row[0])

    def change(self, name: str, values: Values) -> int:
        """Run one statement and return how many rows it changed."""
        return self._run(name, values).rowcount

    def delete(self, name: str, values: Values) -> int:
        """Run a statement that deletes content and return how many rows it deleted."""
        return self.change(name, values)

    def execute(self, statement: Statement, values: Values) -> None:
        """Run a statement that has no name."""
        self._cursor.execute(statement.text, statement.bind(values))

    def _run(self, name: str, values: Values) -> psycopg.Cursor[Columns]:
        statement = self._texts[name]
        return self._cursor.execute(statement.text, statement.bind(values))


@functools.cache
def load_texts(prefix: str) -> Mapping[str, Statement]:
    """Return the statements for tables of a prefix by `file.name`."""
    return {name: compile_text(text) for name, text in load_statements("postgres", prefix).items()}


def compile_text(text: str) -> Statement:
    """Return a text with named parameters as the driver takes it.

    A parameter `NAME_hash` gets the hash of the value `NAME`.
    """
    names = dict.fromkeys(_PARAMETER.findall(text))
    hashed = (name.removesuffix(_HASH) for name in names if name.endswith(_HASH))
    escaped = _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%"))
    return Statement(escaped.encode(), tuple(hashed))


def hash_of(value: Any) -> bytes:
    """Return the SHA-256 of a text, or what stands for None: an index takes no longer value."""
    return hashlib.sha256(_ABSENT if value is None else value.encode()).digest()
