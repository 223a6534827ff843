"""Agent State in a SQLite file, with the standard library."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vitehub_chat.state.providers.sqlite.state import open_sqlite

__all__ = ["open_sqlite"]


def __getattr__(name: str) -> object:
    if name == "open_sqlite":
        from vitehub_chat.state.providers.sqlite.state import (  # noqa: PLC0415  loads sqlite3
            open_sqlite,
        )

        return open_sqlite
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
