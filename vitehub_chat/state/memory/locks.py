"""The table of locks, in memory."""

from __future__ import annotations

from itertools import count

from vitehub_chat.state.memory.indexed import Indexed, Journal
from vitehub_chat.state.records import LockRecord


class MemoryLocks:
    """Locks by key."""

    def __init__(self, journal: Journal) -> None:
        self._locks: Indexed[str, LockRecord] = Indexed(journal)
        self._tokens = count(1)

    def __len__(self) -> int:
        return len(self._locks)

    def get(self, lock_key: str, /) -> LockRecord | None:
        """Return the lock, also one whose lease is over."""
        return self._locks.get(lock_key)

    def put(self, lock: LockRecord, /) -> None:
        """Insert or replace a lock."""
        self._locks.put(lock.lock_key, lock)

    def delete(self, lock_key: str, /) -> None:
        """Delete a lock; no-op if there is none."""
        self._locks.remove(lock_key)

    def delete_all(self) -> None:
        """Delete every lock."""
        for lock_key in self._locks.keys():  # noqa: SIM118 - it is no mapping
            self._locks.remove(lock_key)

    def next_token(self) -> int:
        """Return a new number; one that a failed step took is not given out again."""
        return next(self._tokens)
