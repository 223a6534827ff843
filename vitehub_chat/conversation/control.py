"""Control: stopping a turn from outside, and waiting that a cancelled task does not cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from vitehub_chat.errors import ChatError

T = TypeVar("T")

LOCK_LOST = "lock_lost"


class TurnControl:
    """The switch that ends one turn early; for use in the loop of its turn.

    Attributes:
        reason: Why it was stopped, None while it was not. A lost lock overrides other reasons.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self._listeners: list[Callable[[], object]] = []

    def stop(self, reason: str = "stopped") -> None:
        """Stop the turn; the first reason counts, and repeating does nothing."""
        if self.reason is not None and reason != LOCK_LOST:
            return
        self.reason = reason
        for listener in self._listeners:
            listener()

    def on_stop(self, listener: Callable[[], object]) -> None:
        """Call a function when the turn is stopped, at once if it was stopped already."""
        self._listeners.append(listener)
        if self.reason is not None:
            listener()


class StoppedEarly(Exception):  # noqa: N818 - a way out, not a fault
    """The turn was stopped while code of the application was asked."""


async def ask(awaitable: Awaitable[T], control: TurnControl) -> T:
    """Wait for code of the application, which is cancelled when the turn is stopped.

    Raises:
        StoppedEarly: The turn was stopped, or the waiting task cancelled, meanwhile.
        ChatError: The code cancelled itself (`turn_failed`).
    """
    task = asyncio.ensure_future(awaitable)
    control.on_stop(task.cancel)
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            control.stop("cancelled")
            task.cancel()
    if not task.cancelled():
        return task.result()
    if control.reason is None and not task.cancelling():
        raise _cancelled_itself()
    control.stop("cancelled")
    raise StoppedEarly


async def settle(awaitable: Awaitable[T], control: TurnControl) -> T:
    """Wait for something to its end although the waiting task is cancelled meanwhile.

    Used where half of the work would be lost: the cancellation stops the turn (`cancelled`) and is
    not raised here; who owns the turn raises it when everything is recorded.

    Raises:
        asyncio.CancelledError: The event loop ends, and with it what was waited for.
        ChatError: What was waited for cancelled itself (`turn_failed`).
    """
    task = asyncio.ensure_future(awaitable)
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            control.stop("cancelled")
    if task.cancelled() and not was_cancelled():
        raise _cancelled_itself()
    return task.result()


def was_cancelled() -> bool:
    """Tell whether the current task was asked to end.

    The task of a turn is when its event loop ends: who waits for a turn stops it instead.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@contextmanager
def guarded() -> Iterator[None]:
    """Make an error of a cancellation that code of the application brings about by itself.

    It must not look like somebody cancelling the turn, nor pass by what catches its failures.

    Raises:
        ChatError: The code cancelled itself (`turn_failed`).
    """
    try:
        yield
    except asyncio.CancelledError as error:
        if was_cancelled():
            raise
        raise _cancelled_itself() from error


def _cancelled_itself() -> ChatError:
    return ChatError("code of the application cancelled itself", code="turn_failed")
