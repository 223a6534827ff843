"""Agent State in PostgreSQL, with psycopg. Needs the extra `postgres`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vitehub_chat.errors import MissingDependencyError

if TYPE_CHECKING:
    from vitehub_chat.state.providers.postgres.opening import open_postgres

__all__ = ["open_postgres"]


def __getattr__(name: str) -> object:
    if name == "open_postgres":
        _check_driver()
        from vitehub_chat.state.providers.postgres.opening import (  # noqa: PLC0415  loads psycopg
            open_postgres,
        )

        return open_postgres
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _check_driver() -> None:
    """Import the driver, which also fails where its library is missing."""
    try:
        import psycopg  # noqa: F401, PLC0415  the extra may be missing
    except ImportError as error:
        raise MissingDependencyError("a state in PostgreSQL", extra="postgres") from error
