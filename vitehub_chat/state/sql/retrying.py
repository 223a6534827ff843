"""Retrying: how often a request is made again, and how long is waited before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import attrs

from vitehub_chat.model.ids import new_id

_CHANCES: Final = 1 << 32


def _draw() -> float:
    """Return a number from 0 to 1 by chance."""
    return int(new_id()[:8], 16) / _CHANCES


@attrs.frozen(kw_only=True)
class Retrying:
    """How requests are made again; pauses in seconds.

    Attributes:
        failures: How many requests without an answer one call survives.
        conflicts: How often one call finds that somebody else was faster.
        looks: How often one call finds that it needs to know more.
        shortest: The longest pause after the first failure; it doubles with each, by full jitter.
        longest: The longest pause.
        sleep: What waits.
        draw: A number from 0 to 1 by chance.
    """

    failures: int = 5
    conflicts: int = 100
    looks: int = 20
    shortest: float = 0.05
    longest: float = 2.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = _draw

    async def after_failure(self, number: int) -> None:
        """Wait after a request that got no answer, the first one being 1."""
        await self._pause(self.shortest, number)

    async def after_conflict(self, number: int) -> None:
        """Wait after somebody else was faster; shortly, as most are done with one request."""
        await self._pause(self.shortest / 20, number)

    async def _pause(self, first: float, number: int) -> None:
        most = min(self.longest, first * 2 ** min(number - 1, 16))
        await self.sleep(most * self.draw())
