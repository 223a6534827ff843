"""Agent State on a remote libSQL server, over Hrana, its HTTP protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vitehub_chat.state.providers.libsql.opening import open_libsql

__all__ = ["open_libsql"]


def __getattr__(name: str) -> object:
    if name == "open_libsql":
        from vitehub_chat.state.providers.libsql.opening import (  # noqa: PLC0415  on demand
            open_libsql,
        )

        return open_libsql
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
