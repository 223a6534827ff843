"""Ids that can be foretold."""

from __future__ import annotations

from itertools import count


class CountingIds:
    """A `NewId` that counts: `id-1`, `id-2`, …; threads may share it."""

    def __init__(self, prefix: str = "id-") -> None:
        self._prefix = prefix
        self._numbers = count(1)

    def __call__(self) -> str:
        """Return the next id."""
        return f"{self._prefix}{next(self._numbers)}"
