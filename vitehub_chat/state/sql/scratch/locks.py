"""The table of locks as a step sees it."""

from __future__ import annotations

from typing import Final

from vitehub_chat.model.ids import new_id
from vitehub_chat.state.records import LockRecord
from vitehub_chat.state.sql.scratch.work import Work

_RANDOM_BITS: Final = 24


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

        Above the revisions of their scopes, which are raised to it and outlive the locks; below
        that it is random, so that locks of one revision differ.
        """
        work = self._work
        known = (part.revision for part in work.known.locks.values())
        revision = 1 + max(revision_of(work.last_token), *known, 0)
        work.last_token = (revision << _RANDOM_BITS) + int(new_id(), 16) % (1 << _RANDOM_BITS)
        return work.last_token


def revision_of(token: int) -> int:
    """Return the revision that a token is of."""
    return token >> _RANDOM_BITS
