"""Server clock: the time of the database, as this process can tell it."""

from __future__ import annotations

from datetime import datetime, timedelta

from vitehub_chat.model.clock import Clock, from_epoch_us
from vitehub_chat.state.sql.driver import SqlDriver
from vitehub_chat.state.sql.texts import Texts


class ServerClock:
    """The clock of the machine, moved by its distance to that of the server.

    Processes on machines whose clocks differ agree on it, so that a lease lasts equally long for
    everybody. It is right to about half the time that the server takes to answer.
    """

    def __init__(self, local: Clock) -> None:
        self._local = local
        self._offset = timedelta()

    def now(self) -> datetime:
        """Return the time of the server, aware and in UTC."""
        return self._local.now() + self._offset

    async def measure(self, driver: SqlDriver, texts: Texts) -> None:
        """Ask the server for its time.

        Raises:
            StateUnavailableError: There was no answer.
        """
        before = self._local.now()
        answer = await driver.execute(texts["versions.now"], {})
        middle = before + (self._local.now() - before) / 2
        self._offset = from_epoch_us(int(answer[0][0] or 0)) - middle
