"""Looks: doing something once per thread, however many turns of it ask at the same time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

from vitehub_chat.model.forking import ForkSafeLock
from vitehub_chat.model.keys import ConversationKey

MAX_REMEMBERED = 100_000
"""How many threads are known to be done; what is forgotten is looked at again."""


class Looks:
    """Remembers which threads were looked at; usable from several event loops."""

    def __init__(self, *, limit: int = MAX_REMEMBERED) -> None:
        self._limit = limit
        self._lock = ForkSafeLock()
        self._done: OrderedDict[ConversationKey, None] = OrderedDict()
        self._going_on: dict[ConversationKey, Future[None]] = {}

    async def once(self, key: ConversationKey, look: Callable[[], Awaitable[None]]) -> None:
        """Look at a thread that was not looked at, or wait for who does it now.

        A look that raises or is cancelled does not count; those who waited for it go on without.
        """
        with self._lock:
            if key in self._done:
                self._done.move_to_end(key)
                return
            other = self._going_on.get(key)
            mine: Future[None] = Future()
            if other is None:
                self._going_on[key] = mine
        if other is not None:
            await asyncio.shield(asyncio.wrap_future(other))
            return
        try:
            await look()
            self._remember(key)
        finally:
            with self._lock:
                del self._going_on[key]
            mine.set_result(None)

    def _remember(self, key: ConversationKey) -> None:
        with self._lock:
            self._done[key] = None
            while len(self._done) > self._limit:
                self._done.popitem(last=False)
