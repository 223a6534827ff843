"""Statements: texts with named parameters as the server takes them."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from vitehub_chat.state.providers.postgres.texts import escape
from vitehub_chat.state.sql.driver import Value

_PARAMETER: Final = re.compile(r"(?<![:\w]):([a-z][a-z0-9_]*)")
_HASHED: Final = re.compile(r"([a-z_]+)_hash((?:_\d+)?)")
_ABSENT: Final = b"\xff"  # in no UTF-8 text

Command = tuple[bytes, list[bytes | None]]
"""A text with parameters like `$1`, and their values as text."""

_Source = Callable[[Mapping[str, Value]], bytes | None]


def command_of(text: str, named: Mapping[str, Value]) -> Command:
    """Return a statement as the server takes it.

    A parameter `NAME_hash` gets the hash of the value `NAME`, and `NAME_hash_1` that of `NAME_1`.
    """
    compiled, sources = _compile(text)
    return compiled, [source(named) for source in sources]


def hash_of(value: Value) -> str:
    """Return the SHA-256 of a text, or what stands for None: an index takes no longer value."""
    given = _ABSENT if value is None else str(value).encode()
    return rf"\x{hashlib.sha256(given).hexdigest()}"


@functools.lru_cache(maxsize=2048)
def _compile(text: str) -> tuple[bytes, Sequence[_Source]]:
    names = list(dict.fromkeys(_PARAMETER.findall(text)))
    compiled = _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", text)
    return compiled.encode(), [_source_of(name) for name in names]


def _source_of(name: str) -> _Source:
    hashed = _HASHED.fullmatch(name)
    if hashed is None:
        return lambda named: _encode(named[name])
    plain = hashed[1] + hashed[2]
    return lambda named: hash_of(named[plain]).encode()


def _encode(value: Value) -> bytes | None:
    if isinstance(value, str):
        return escape(value).encode()
    if isinstance(value, bytes):
        return rb"\x" + value.hex().encode()
    if value is None:
        return None
    return b"%d" % value if isinstance(value, int) else repr(value).encode()
