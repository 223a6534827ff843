"""A clock that stands still until it is moved."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta


class FakeClock:
    """A `Clock` whose time passes only by `advance`; threads may share it."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        """Start at an aware time."""
        self._now = start.astimezone(UTC)
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """Return the time it was moved to, aware and in UTC."""
        return self._now

    def advance(self, **duration: float) -> datetime:
        """Move by a duration, given like to `timedelta`, and return the new time.

        A negative one moves back, as the clocks of machines do now and then.
        """
        with self._lock:
            self._now += timedelta(**duration)
            return self._now
