"""Sizes: what is too large for a database is refused before it is sent."""

from __future__ import annotations

from collections.abc import Iterable

from vitehub_chat.errors import StateError
from vitehub_chat.state.sql.driver import Statement, Value


def check_sizes(statements: Iterable[Statement], most: int | None) -> None:
    """Refuse values with more than `most` bytes; None allows all.

    Raises:
        StateError: There is one, with the code `too_large`.
    """
    if most is None:
        return
    for _, named in statements:
        for name, value in named.items():
            size = _size_of(value, most)
            if size > most:
                raise StateError(
                    f"the value of {name!r} has {size} bytes",
                    code="too_large",
                    hint=f"this database takes at most {most}",
                )


def _size_of(value: Value, most: int) -> int:
    """Return how many bytes a value has, or a little number if that is certainly enough."""
    if not isinstance(value, str | bytes) or len(value) * 4 <= most:
        return 0
    return len(value) if isinstance(value, bytes) or value.isascii() else len(value.encode())
