"""Positions in the log of a database, so that a replica does not answer with older data."""

from __future__ import annotations


class LogPosition:
    """How far the log was at the last write, and since then at reads."""

    def __init__(self) -> None:
        """Start with no write known, so that every replica is good enough."""
        self._index: int | None = None

    def note_write(self, index: int | None) -> None:
        """Note where a write ended; one before the last means that the log has begun anew."""
        if index is not None:
            self._index = index

    def note_read(self, index: int | None) -> None:
        """Note how far a read saw; later ones shall not see less."""
        if index is not None:
            self._index = max(index, self._index or 0)

    def wanted(self) -> int | None:
        """Return how far a read has to see, or None if anything will do."""
        return self._index
