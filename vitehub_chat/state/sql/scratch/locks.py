"""The table of locks as a step sees it."""

from __future__ import annotations

from vitehub_chat.state.records import LockRecord
from vitehub_chat.state.sql.scratch.work import Work


class ScratchLocks:
    """Locks by key."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def get(self, lock_key: str, /) -> LockRecord | None:
        """Return the lock, also one whose lease is over."""
        return self._work.lock(lock_key).lock

    def put(self, lock: LockRecord, /) -> None:
        """Insert or replace a lock."""
        part = self._work.lock(lock.lock_key)
        self._work.note(("lock", lock.lock_key, ""), part.lock)
        part.lock = lock

    def delete(self, lock_key: str, /) -> None:
        """Delete a lock; no-op if there is none."""
        part = self._work.lock(lock_key)
        if part.lock is not None:
            self._work.note(("lock", lock_key, ""), part.lock)
            part.lock = None

    def next_token(self) -> int:
        """Return a number higher than every one returned before, of the locks looked at.

        The revision of a lock's scope is never below a token of it, and outlives the lock.
        """
        work = self._work
        revisions = (part.revision for part in work.known.locks.values())
        work.last_token = 1 + max(work.last_token, *revisions, 0)
        return work.last_token
