"""Statements: which parameters a text has, and whether it only reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import attrs

from vitehub_chat.state.providers.libsql.values import encode_value
from vitehub_chat.state.sql.driver import Value

_TOKENS: Final = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|:([A-Za-z_]\w*)|([A-Za-z_]\w*)""",
    re.DOTALL,
)
_to_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_READING: Final = frozenset({"SELECT", "VALUES", "EXPLAIN", "PRAGMA", "WITH"})
_WRITING: Final = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE"})


@attrs.frozen
class Shape:
    """What a statement needs and does.

    Attributes:
        names: The names of its parameters.
        reads: Whether it certainly writes nothing.
    """

    names: frozenset[str]
    reads: bool


@lru_cache(maxsize=1024)
def shape_of(sql: str) -> Shape:
    """Return the shape of a statement; words in quotes and comments do not count."""
    matches = list(_TOKENS.finditer(sql))
    words = [match[2].upper() for match in matches if match[2]]
    reads = bool(words) and words[0] in _READING
    if reads and words[0] == "WITH":
        reads = _WRITING.isdisjoint(words)
    return Shape(frozenset(match[1] for match in matches if match[1]), reads)


def encode_statement(sql: str, named: Mapping[str, Value]) -> bytes:
    """Return a statement as the protocol has it; values that it does not use are left away.

    Raises:
        InputError: A value is none of the database.
    """
    names = shape_of(sql).names
    arguments = [
        {"name": name, "value": encode_value(name, value)}
        for name, value in named.items()
        if name in names
    ]
    return _to_json({"sql": sql, "named_args": arguments}).encode()
