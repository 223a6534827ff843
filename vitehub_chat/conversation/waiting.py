"""Waiting: callers of this process that wait for a run of theirs, or for its end."""

from __future__ import annotations

import asyncio
import os

import attrs

from vitehub_chat.model.forking import ForkSafeLock
from vitehub_chat.model.results import RunResult
from vitehub_chat.state.values import Grant


@attrs.frozen
class Ended:
    """A run of this process ended: with a result, or with an exception for its callers."""

    result: RunResult | None
    error: BaseException | None = None


News = Grant | Ended


class Seat:
    """One waiting caller.

    Attributes:
        may_run: Whether it waits to run the entry; else it only follows it.
        is_withdrawn: Whether the entry was taken back, so that no run of it goes on.
    """

    def __init__(self, room: WaitingRoom, ticket_id: str, *, may_run: bool) -> None:
        self.may_run = may_run
        self.is_withdrawn = False
        self._room = room
        self._ticket_id = ticket_id
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._news: list[News] = []
        self._token: int | None = None
        self._has_left = False

    async def next(self, timeout_s: float) -> News | None:
        """Return the next news, or None when woken without any or after the timeout."""
        if not self._news:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._woken.wait()
            except TimeoutError:
                return None
        self._woken.clear()
        return self._news.pop(0) if self._news else None

    def tell(self, news: News) -> bool:
        """Hand over news from any thread; False if the caller has left or its loop is gone."""
        with self._room.lock:
            if self._has_left:
                return False
            self._news.append(news)
        try:
            self._loop.call_soon_threadsafe(self.wake)
        except RuntimeError:
            return False
        return True

    def wake(self) -> None:
        """Let the caller look around, in its own loop."""
        self._woken.set()

    def took(self, grant: Grant) -> None:
        """Remember that the caller runs a grant, however it learned of it."""
        self._token = grant.token

    def has_taken(self, grant: Grant) -> bool:
        """Tell whether the caller runs, or ran, this grant."""
        return self._token == grant.token

    def leave(self) -> list[News]:
        """Give the seat up and return the news that was not taken."""
        self._room.remove(self._ticket_id, self)
        with self._room.lock:
            self._has_left = True
        return self._news


class WaitingRoom:
    """The waiting callers of one agent, by ticket; usable from several event loops.

    Attributes:
        lock: Held for moments by whoever changes seats or their news.
    """

    def __init__(self) -> None:
        self.lock = ForkSafeLock()
        self._pid = os.getpid()
        self._seats: dict[str, list[Seat]] = {}

    def enter(self, ticket_id: str, *, may_run: bool) -> Seat:
        """Take a seat to wait for a ticket."""
        seat = Seat(self, ticket_id, may_run=may_run)
        with self.lock:
            if self._pid != os.getpid():
                # Those of a parent process wait there.
                self._seats.clear()
                self._pid = os.getpid()
            self._seats.setdefault(ticket_id, []).append(seat)
        return seat

    def remove(self, ticket_id: str, seat: Seat) -> None:
        """Remove a seat; no-op if it is gone."""
        with self.lock:
            seats = self._seats.get(ticket_id, [])
            if seat in seats:
                seats.remove(seat)
            if not seats:
                self._seats.pop(ticket_id, None)

    def hand_over(self, grant: Grant) -> bool:
        """Tell the caller that waits to run this grant; False if there is none here."""
        return any(seat.may_run and seat.tell(grant) for seat in self._of(grant.ticket_id))

    def announce(self, ticket_id: str, ended: Ended) -> None:
        """Tell everybody who waits for a ticket that it has ended."""
        for seat in self._of(ticket_id):
            seat.tell(ended)

    def __len__(self) -> int:
        return len(self._seats)

    def _of(self, ticket_id: str) -> list[Seat]:
        with self.lock:
            return list(self._seats.get(ticket_id, ()))
