"""Server clock: the time of the database, as this process can tell it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from vitehub_chat.errors import StateError
from vitehub_chat.model.clock import Clock, from_epoch_us
from vitehub_chat.state.sql.driver import SqlDriver
from vitehub_chat.state.sql.texts import Texts

MEASURED_EVERY_SECONDS: Final = 300.0


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
        self._asked_at = elapsed()

    def now(self) -> datetime:
        """Return the time of the server, aware and in UTC."""
        return self._local.now() + self._offset

    async def measure(self, driver: SqlDriver, texts: Texts) -> None:
        """Ask the server for its time.

        Raises:
            StateUnavailableError: There was no answer.
        """
        self._asked_at = self._elapsed()
        before = self._local.now()
        answer = await driver.execute(texts["versions.now"], {})
        middle = before + (self._local.now() - before) / 2
        self._offset = from_epoch_us(int(answer[0][0] or 0)) - middle

    async def measure_if_due(self, driver: SqlDriver, texts: Texts) -> None:
        """Ask the server again if that was done long ago; one that is away is left alone."""
        if self._elapsed() - self._asked_at >= MEASURED_EVERY_SECONDS:
            with contextlib.suppress(StateError):
                await self.measure(driver, texts)
