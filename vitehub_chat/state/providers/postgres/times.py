"""Times: the clock of the server, as this process can tell it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from vitehub_chat.model.clock import Clock, from_epoch_us

MEASURED_EVERY_SECONDS: Final = 300


class ServerClock:
    """The clock of the machine, moved by its distance to that of the server.

    Processes on machines whose clocks differ agree on it, so that a lease lasts equally long for
    everybody. It is right to about half the time that the server takes to answer.
    """

    def __init__(self, local: Clock, *, elapsed: Callable[[], float] = time.monotonic) -> None:
        """Follow a clock until a server was asked; `elapsed` counts seconds from any start."""
        self._local = local
        self._elapsed = elapsed
        self._offset = timedelta()
        self._measured_at: float | None = None

    def now(self) -> datetime:
        """Return the time of the server, aware and in UTC."""
        return self._local.now() + self._offset

    def measure(self, ask: Callable[[], int]) -> None:
        """Ask the server for its time, in microseconds, unless that was done lately."""
        at = self._elapsed()
        if self._measured_at is not None and at - self._measured_at < MEASURED_EVERY_SECONDS:
            return
        before = self._local.now()
        answer = from_epoch_us(ask())
        self._offset = answer - (before + (self._local.now() - before) / 2)
        self._measured_at = at
