"""Driving: letting a driver answer, and getting it to stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any, Protocol

import attrs

from vitehub_chat.conversation.control import TurnControl
from vitehub_chat.errors import ChatError
from vitehub_chat.model.context_policy import Ask
from vitehub_chat.model.estimates import DescribedTool
from vitehub_chat.model.events import AgentEvent, DriverEvent
from vitehub_chat.model.json_text import Json
from vitehub_chat.model.messages import Message
from vitehub_chat.model.plans import AnsweredBy
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.results import PreparedInvocation, RunResult

GRACE_S = 5.0
"""How long a driver that was told to stop may take to do so."""

FINISH_S = 30.0
"""How long the capabilities may take to see the end of a turn."""

Sink = Callable[[AgentEvent], None]
"""Where the events of a turn go; must not block."""


@attrs.frozen(kw_only=True)
class InvokeRequest:
    """What an invocation is made of.

    Attributes:
        native: Payloads that drivers left with the messages, `{"format", "payload"}` by id.
        deadline: When the driver is stopped, or None.
        is_dry_run: Whether the driver is not going to be called.
    """

    request: TurnRequest
    prepared: PreparedInvocation
    native: Mapping[str, Json] = attrs.field(factory=dict)
    deadline: datetime | None = None
    is_dry_run: bool = False


BeforeRequest = Callable[[Sequence[Message]], Awaitable[Sequence[Message]]]
"""Asked before each request of a tool loop; gives the messages to send."""


@attrs.frozen(kw_only=True)
class CallFacts:
    """What is known of a call beside its messages.

    Attributes:
        model: The model that is called, or None.
        window_tokens: How much it takes as far as its driver knows, or None.
        own_instructions: What the driver tells the model itself, or None.
        instructions: What the capabilities tell it, or None.
        tools: The tools that the model is told of.
        ask: Asks the model, or None where the driver has none.
    """

    model: str | None = None
    window_tokens: int | None = None
    own_instructions: str | None = None
    instructions: str | None = None
    tools: Sequence[DescribedTool] = ()
    ask: Ask | None = None


class Invocation(Protocol):
    """One prepared call of a driver, with what the capabilities made of it."""

    @property
    def prepared(self) -> PreparedInvocation:
        """What the driver gets."""

    @property
    def answered_by(self) -> AnsweredBy:
        """Who answers."""

    @property
    def facts(self) -> CallFacts:
        """What else is sent, and to whom."""

    def fitted(
        self, prepared: PreparedInvocation, before_request: BeforeRequest | None, /
    ) -> Invocation:
        """Return the same call with what fits into the model's window."""

    def events(self) -> AsyncIterator[DriverEvent]:
        """Call the driver; at most once."""

    async def finish(self, result: RunResult, /) -> None:
        """Tell the capabilities what came of it."""


Invoke = Callable[[InvokeRequest], Awaitable[Invocation]]


async def drive(
    stream: AsyncIterator[DriverEvent],
    take: Callable[[DriverEvent], Awaitable[None]],
    control: TurnControl,
    limit: timedelta | None,
) -> None:
    """Take the events of a driver until it ends or the turn is stopped.

    A driver that is stopped is cancelled and closed; one that does not end within the grace time
    is left behind. What it raises while it is stopped does not count.

    Raises:
        Exception: Whatever the driver raises by itself.
    """
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[None] = loop.create_future()
    task = asyncio.create_task(_consume(stream, take))
    control.on_stop(task.cancel)
    control.on_stop(stopped.cancel)
    timer: asyncio.TimerHandle | None = None
    if limit is not None:
        timer = loop.call_later(limit.total_seconds(), control.stop, "timeout")
    try:
        while not (task.done() or stopped.done()):
            await _wait({task, stopped}, control, None)
        give_up_at = loop.time() + GRACE_S
        while not task.done() and loop.time() < give_up_at:
            await _wait({task}, control, give_up_at - loop.time())
    finally:
        if timer is not None:
            timer.cancel()
    _raise_own_error(task, control)


async def _consume(
    stream: AsyncIterator[DriverEvent], take: Callable[[DriverEvent], Awaitable[None]]
) -> None:
    if not hasattr(stream, "aclose"):
        async for event in stream:
            await take(event)
        return
    closable: Any = stream
    async with aclosing(closable):
        async for event in closable:
            await take(event)


async def _wait(
    futures: set[asyncio.Future[None]],
    control: TurnControl,
    timeout_s: float | None,
) -> None:
    """Wait for the first of some futures; a cancellation of the waiting task stops the turn."""
    try:
        await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        control.stop("cancelled")


def _raise_own_error(task: asyncio.Task[None], control: TurnControl) -> None:
    if not task.done():
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return
    if task.cancelled():
        if control.reason is None:
            raise ChatError("the driver cancelled itself", code="turn_failed")
        return
    error = task.exception()
    if error is not None and control.reason is None:
        raise error


async def tell_end(invocation: Invocation, result: RunResult) -> None:
    """Let the capabilities of an invocation see the end of its turn.

    Raises:
        TimeoutError: They took too long.
        Exception: What one of them raised.
    """
    async with asyncio.timeout(FINISH_S):
        await invocation.finish(result)
