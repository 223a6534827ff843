"""Forking: locks of threads with which a forked child can go on."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType


class ForkSafeLock:
    """A lock that no other thread holds while the process forks.

    So a child finds it free, and whole what it guards. To be held for moments only, never while
    waiting for something else.
    """

    def __init__(self) -> None:
        # One that forks while it holds the lock itself must not wait for itself.
        self._lock = threading.RLock()
        key = id(self)
        _locks[key] = weakref.ref(self, lambda _: _locks.pop(key, None))

    def acquire(self) -> None:
        """Wait until no other thread holds it, and hold it."""
        self._lock.acquire()

    def acquire_now(self) -> bool:
        """Hold it unless another thread does; tell whether it is held."""
        return self._lock.acquire(blocking=False)

    def release(self) -> None:
        """Let go of it."""
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


_locks: dict[int, weakref.ref[ForkSafeLock]] = {}
_held: dict[int, list[ForkSafeLock]] = {}
"""What is held for a fork, by the thread that forks."""


def _hold_all() -> None:
    """Hold every lock, without waiting for one while holding others: a thread may nest them."""
    found = [lock for ref in list(_locks.values()) if (lock := ref()) is not None]
    taken = next((lock for lock in found if not lock.acquire_now()), None)
    while taken is not None:
        for lock in found[: found.index(taken)]:
            lock.release()
        found.remove(taken)
        found.insert(0, taken)
        taken.acquire()
        taken = next((lock for lock in found[1:] if not lock.acquire_now()), None)
    _held[threading.get_ident()] = found


def _release_all() -> None:
    for lock in _held.pop(threading.get_ident(), ()):
        lock.release()


os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_release_all)
