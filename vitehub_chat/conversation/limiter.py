"""Limiter: how many turns of one key run at the same time in this process."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs


@attrs.define
class _Line:
    active: int = 0
    waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = attrs.field(
        factory=deque
    )


class Limiter:
    """Slots by key, first come first served, usable from several event loops.

    A key without turns leaves nothing behind.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[str, _Line] = {}

    @asynccontextmanager
    async def slot(self, key: str, limit: int) -> AsyncIterator[None]:
        """Hold one of `limit` slots of a key, waiting in line for it."""
        await self._enter(key, limit)
        try:
            yield
        finally:
            self._leave(key)

    def __len__(self) -> int:
        return len(self._lines)

    async def _enter(self, key: str, limit: int) -> None:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        with self._lock:
            line = self._lines.setdefault(key, _Line())
            if line.active < limit:
                line.active += 1
                return
            place = (loop, turn)
            line.waiting.append(place)
        try:
            await turn
        except asyncio.CancelledError:
            with self._lock:
                was_waiting = place in line.waiting
                if was_waiting:
                    line.waiting.remove(place)
            if not was_waiting:
                self._leave(key)
            raise

    def _leave(self, key: str) -> None:
        """Pass the slot to who waits longest; loops that are gone are passed over."""
        with self._lock:
            line = self._lines[key]
            while line.waiting:
                loop, turn = line.waiting.popleft()
                try:
                    loop.call_soon_threadsafe(_go, turn)
                except RuntimeError:
                    continue
                return
            line.active -= 1
            if not line.active:
                del self._lines[key]


def _go(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
