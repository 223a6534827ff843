"""Background: turns that this process runs for others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from datetime import timedelta
from typing import Any

from vitehub_chat.conversation.control import TurnControl
from vitehub_chat.conversation.ending import end_turns


class Background:
    """Tasks that nobody waits for, with strong references; usable from several event loops.

    What one raises was told in the log where it was raised.
    """

    def __init__(self) -> None:
        self._held: set[tuple[asyncio.Task[Any], TurnControl]] = set()

    def __iter__(self) -> Iterator[tuple[asyncio.Task[Any], TurnControl]]:
        return iter(tuple(self._held))

    def __len__(self) -> int:
        return len(self._held)

    def start(self, work: Coroutine[Any, Any, Any], control: TurnControl) -> asyncio.Task[Any]:
        """Run something to its end; `control` is the switch that ends it early."""
        task = asyncio.create_task(work)
        held = (task, control)
        self._held.add(held)

        def forget(ended: asyncio.Task[Any]) -> None:
            self._held.discard(held)
            _ = ended.cancelled() or ended.exception()

        task.add_done_callback(forget)
        return task

    async def settle(self, grace: timedelta) -> None:
        """Wait until the tasks of this loop have ended; stop those that outlast `grace`."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + grace.total_seconds()
        while mine := self._mine():
            left = give_up_at - loop.time()
            if left > 0:
                await asyncio.wait([task for task, _ in mine], timeout=left)
            else:
                await end_turns(mine)
            # The last one may have started the next: let it be noted before looking again.
            await asyncio.sleep(0)

    async def stop(self) -> None:
        """Stop the tasks, those of other loops too, and wait until they are recorded."""
        asking = asyncio.current_task()
        while others := [each for each in self if each[0] is not asking and _is_alive(each[0])]:
            await end_turns(others)
            # The last one may have started the next: let it be noted before looking again.
            await asyncio.sleep(0)

    def _mine(self) -> list[tuple[asyncio.Task[Any], TurnControl]]:
        loop, asking = asyncio.get_running_loop(), asyncio.current_task()
        return [each for each in self if each[0].get_loop() is loop and each[0] is not asking]


def _is_alive(task: asyncio.Task[Any]) -> bool:
    return task.get_loop().is_running()
