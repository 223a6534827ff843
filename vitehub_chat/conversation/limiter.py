"""Limiter: how many turns of one key run at the same time in this process."""

from __future__ import annotations

import asyncio
import os
from collections import deque

import attrs

from vitehub_chat.conversation.places import Place, scope_key
from vitehub_chat.model.forking import ForkSafeLock
from vitehub_chat.model.policies import ChatPolicy
from vitehub_chat.model.requests import TurnRequest


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
        self._lock = ForkSafeLock()
        self._pid = os.getpid()
        self._lines: dict[str, _Line] = {}

    def __len__(self) -> int:
        return len(self._lines)

    async def enter(self, key: str, limit: int) -> None:
        """Take one of `limit` slots of a key, waiting in line for it; to be left by `leave`."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        with self._lock:
            if self._pid != os.getpid():
                # What holds slots of a parent process runs there.
                self._lines.clear()
                self._pid = os.getpid()
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
                self.leave(key)
            raise

    def leave(self, key: str) -> None:
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


class Slot:
    """A place in the line of a key, taken at once, and the slot that it leads to.

    Attributes:
        entering: Done once the slot is there; cancelled if it was given up before.
    """

    def __init__(self, limiter: Limiter, key: str, limit: int) -> None:
        self.entering = asyncio.ensure_future(limiter.enter(key, limit))
        self._limiter = limiter
        self._key = key
        self._is_given_up = False

    def give_up(self) -> None:
        """Leave the slot or the line; repeating does nothing."""
        if self._is_given_up:
            return
        self._is_given_up = True
        if not self.entering.done():
            self.entering.cancel()
        elif not self.entering.cancelled():
            self._limiter.leave(self._key)


async def slot_for(
    limiter: Limiter, policy: ChatPolicy, place: Place, request: TurnRequest
) -> Slot | None:
    """Take a place in the line of a message whose turns are limited, by arrival; else None.

    Raises:
        ConfigError: A callable `lock_scope` returned something else than a scope.
        Exception: What it raised.
    """
    limit = policy.concurrency.max_concurrent
    if policy.concurrency.strategy != "parallel" or limit is None:
        return None
    key = await scope_key(place, request, policy)
    return None if key is None else Slot(limiter, key, limit)


def _go(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
