"""Ending: the turns of an agent that is closed, and the end of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from vitehub_chat.conversation.control import TurnControl

SHUTDOWN = "shutdown"
LOOK_S = 0.2
"""How often it is looked whether another event loop still runs."""

Turn = tuple[asyncio.Task[Any], TurnControl]


async def end_turns(turns: Iterable[Turn]) -> None:
    """Stop turns, also those of other event loops, and wait until they are recorded.

    Turns of loops that do not run any more are passed over: nothing could record them.
    """
    here = asyncio.get_running_loop()
    by_loop: dict[asyncio.AbstractEventLoop, list[Turn]] = {}
    for turn in turns:
        by_loop.setdefault(turn[0].get_loop(), []).append(turn)
    waiting: dict[asyncio.Future[Any], asyncio.AbstractEventLoop] = {}
    for task, control in by_loop.pop(here, ()):
        control.stop(SHUTDOWN)
        waiting[task] = here
    for loop, others in by_loop.items():
        if (over := _stop_elsewhere(loop, others)) is not None:
            waiting[asyncio.wrap_future(over)] = loop
    while waiting:
        done, _ = await asyncio.wait(waiting, timeout=LOOK_S)
        waiting = {
            each: loop for each, loop in waiting.items() if each not in done and loop.is_running()
        }


def _stop_elsewhere(loop: asyncio.AbstractEventLoop, turns: Sequence[Turn]) -> Future[None] | None:
    """Stop the turns of a loop there, all at once, so that none takes the place of another.

    Returns what is done when all of them are, or None if the loop is closed.
    """
    over: Future[None] = Future()
    left = len(turns)

    def count(_task: asyncio.Task[Any]) -> None:
        nonlocal left
        left -= 1
        if not left:
            over.set_result(None)

    def stop() -> None:
        for task, control in turns:
            control.stop(SHUTDOWN)
            task.add_done_callback(count)

    try:
        loop.call_soon_threadsafe(stop)
    except RuntimeError:
        return None
    return over
