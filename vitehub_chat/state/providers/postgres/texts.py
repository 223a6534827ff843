"""Texts: PostgreSQL stores every character but NUL, so that one is written as two others.

The mark is a control character. JSON text and ids have none, so they are stored as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from psycopg.adapt import Loader
from psycopg.types.string import StrDumperUnknown

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.abc import Buffer

_NUL: Final = "\0"
_MARK: Final = "\x1a"


def escape(text: str) -> str:
    """Return a text without NUL; texts that differ stay different."""
    if _NUL not in text and _MARK not in text:
        return text
    return text.replace(_MARK, _MARK + "s").replace(_NUL, _MARK + "0")


def restore(text: str) -> str:
    """Return the text that `escape` made this of."""
    if _MARK not in text:
        return text
    return text.replace(_MARK + "0", _NUL).replace(_MARK + "s", _MARK)


class TextDumper(StrDumperUnknown):
    """Writes texts escaped."""

    def dump(self, obj: str) -> Buffer | None:
        """Return the bytes of a value."""
        return super().dump(escape(obj))


class TextLoader(Loader):
    """Reads escaped texts."""

    def load(self, data: Buffer) -> str:
        """Return the value of bytes."""
        return restore(bytes(data).decode())


def use_escaped_texts(connection: Connection) -> None:
    """Let every text that passes through a connection be escaped on its way."""
    connection.adapters.register_dumper(str, TextDumper)
    connection.adapters.register_loader("text", TextLoader)
