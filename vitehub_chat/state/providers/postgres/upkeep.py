"""Upkeep: what is done between the calls, a little at a time."""

from __future__ import annotations

import contextlib
import threading
from typing import Final

import psycopg

from vitehub_chat.errors import ChatError
from vitehub_chat.model.clock import Clock, to_epoch_us
from vitehub_chat.state.providers.postgres.link import READING, UPKEEP, Link
from vitehub_chat.state.providers.postgres.tables import PostgresTables
from vitehub_chat.state.providers.postgres.times import ServerClock

SLICE: Final = 200
"""How many rows one transaction removes at most, of each kind."""


class Upkeep:
    """Removes what has expired, at once and then once per interval, and asks for the time.

    A server that is away or busy is left alone until the next time.
    """

    def __init__(self, clock: Clock, interval_ms: int) -> None:
        self._clock = clock
        self._interval = interval_ms * 1000
        self._due_at: int | None = None
        self._turn = threading.Lock()

    def ask_for_time(self, link: Link) -> None:
        """Compare the clock with that of the server, if it is one that follows it."""
        if isinstance(self._clock, ServerClock):
            self._clock.measure(lambda: link.transact(READING, _read_time))

    def run_slice(self, link: Link) -> bool:
        """Remove some if it is time to; tell whether more are left for this caller."""
        now = to_epoch_us(self._clock.now())
        if not self._turn.acquire(blocking=False):
            return False
        try:
            if self._due_at is not None and now < self._due_at:
                return False
            is_more = False
            with contextlib.suppress(psycopg.Error, ChatError):
                is_more = link.attempt(UPKEEP[0], lambda tables: _remove(tables, now))
            self._due_at = None if is_more else now + self._interval
            return is_more
        finally:
            self._turn.release()


def _read_time(tables: PostgresTables) -> int:
    microseconds: int = tables.statements.fetch_existing("meta.time", {})[0]
    return microseconds


def _remove(tables: PostgresTables, now: int) -> bool:
    values = {"now": now, "limit": SLICE}
    if not tables.statements.fetch_existing("meta.holds_expired", values)[0]:
        return False
    rows = tables.statements.delete("rows.purge", values)
    entries = tables.statements.delete("entries.purge", values)
    return SLICE in {rows, entries}
