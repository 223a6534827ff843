"""Lines: who waits in this process for whom, so that its own writes do not refuse each other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager

from vitehub_chat.model.forking import ForkSafeLock


class Lines:
    """Lines of tasks by name, first come first served; of any event loop in any thread."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._lines: dict[str, deque[Future[None]]] = {}

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        """Wait until nobody before holds a name, and hold it."""
        place: Future[None] = Future()
        with self._lock:
            line = self._lines.setdefault(name, deque())
            line.append(place)
            is_first = len(line) == 1
        try:
            if not is_first:
                await asyncio.wrap_future(place)
            yield
        finally:
            self._leave(name, place)

    def _leave(self, name: str, place: Future[None]) -> None:
        with self._lock:
            line = self._lines[name]
            was_first = line[0] is place
            line.remove(place)
            following = line[0] if line else None
            if following is None:
                del self._lines[name]
        # One that was cancelled meanwhile leaves by itself, and wakes who comes after it.
        if was_first and following is not None and following.set_running_or_notify_cancel():
            following.set_result(None)
