"""Sweeping: running what dead processes left waiting, as long as something serves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, Self

from vitehub_chat.conversation import events
from vitehub_chat.errors import StateError

SWEEP_EVERY: Final = timedelta(seconds=20)
"""How often a process that serves sweeps; it has to at least every 30 seconds."""


class Sweeper:
    """Sweeps at once and then again and again while it is entered."""

    def __init__(self, sweep: Callable[[], Awaitable[int]], every: timedelta = SWEEP_EVERY) -> None:
        """Say what sweeps, and how often."""
        self._sweep = sweep
        self._every = every
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._go_on())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _go_on(self) -> None:
        while True:
            try:
                await self._sweep()
            except StateError as error:
                # A state that is away now is swept the next time.
                events.turn_failed(error, code=error.code)
            await asyncio.sleep(self._every.total_seconds())
