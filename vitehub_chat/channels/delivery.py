"""Delivery: one answer on its way to a channel, while its turn runs and after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from typing import Any

import attrs

from vitehub_chat.channels.contract import Channel
from vitehub_chat.channels.values import DeliveryPlan, Target
from vitehub_chat.conversation import events
from vitehub_chat.conversation.control import guarded
from vitehub_chat.conversation.invocation import PLACEHOLDER
from vitehub_chat.conversation.replies import APOLOGY
from vitehub_chat.model.events import AgentEvent, RunFailed, RunStarted
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import UNSET, ReplyPolicy
from vitehub_chat.model.results import PreparedInvocation, RunResult

DOTS = "..."
"""What is posted before a growing answer where nothing else is said."""

SEND_S = 300.0
"""How long a channel may take to post an answer once its turn has ended."""

FAILED = "delivery_failed"
"""The code under which the log tells that an answer could not be posted."""


def plan_delivery(
    reply: ReplyPolicy, features: frozenset[str], context: Mapping[str, Any]
) -> DeliveryPlan:
    """Return how an answer is shown, from the options, the channel and the context of its call."""
    grows = reply.stream and bool(features & {"edit", "stream"})
    placeholder = context.get(PLACEHOLDER, UNSET)
    if not grows:
        placeholder = reply.loading
    elif placeholder is UNSET:
        placeholder = DOTS
    return DeliveryPlan(
        mode="stream" if grows else "whole",
        update_interval=reply.update_interval,
        placeholder=placeholder,
        error_text=_error_text(reply),
    )


def _error_text(reply: ReplyPolicy) -> str | None:
    given = reply.error_text
    return given if given is None or isinstance(given, str) else APOLOGY


@attrs.frozen(kw_only=True)
class Route:
    """Where an answer goes.

    Attributes:
        key: The conversation.
        answers: The id of the message that is answered.
    """

    key: ConversationKey
    channel: Channel
    target: Target
    answers: str | None


class Delivery:
    """The answer of one turn, posted by its channel in a task of its own.

    Nothing is posted unless the turn was driven or failed. Usable in the loop of the turn.
    """

    def __init__(
        self,
        route: Route,
        reply: ReplyPolicy,
        *,
        start: Callable[[Delivery], None],
        ended: Callable[[Route, RunResult], None],
    ) -> None:
        self.route = route
        self.sent = Future[None]()
        self._reply = reply
        self._start = start
        self._ended = ended
        self._context: Mapping[str, Any] = {}
        self._events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        self._is_started = False
        self._give_up_at: float | None = None
        self._limit: asyncio.Timeout | None = None

    def begin(self, prepared: PreparedInvocation, /) -> None:
        """Learn what the driver gets."""
        self._context = prepared.context

    def take(self, event: AgentEvent, /) -> None:
        """Take the next event; the first one that there is something to show for starts it."""
        if not self._is_started:
            if self._reply.delivery == "manual" or not isinstance(event, RunStarted | RunFailed):
                return
            self._is_started = True
            self._start(self)
        self._events.put_nowait(event)

    def end(self, result: RunResult | None, /) -> None:
        """Learn that the turn is over; what is not posted in time is given up."""
        self._events.put_nowait(None)
        self._give_up_at = asyncio.get_running_loop().time() + SEND_S
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(self._give_up_at)
        if result is not None:
            self._ended(self.route, result)

    async def send(self, previous: Future[None] | None) -> None:
        """Post the answer behind the one before it in its thread; a failure is logged."""
        route = self.route
        try:
            async with asyncio.timeout_at(self._give_up_at) as self._limit:
                if previous is not None:
                    await asyncio.shield(asyncio.wrap_future(previous))
                plan = plan_delivery(self._reply, route.channel.features, self._context)
                with guarded():
                    await route.channel.send(route.target, self._follow(), delivery=plan)
        except Exception as error:  # noqa: BLE001 - told in the log; the answer is recorded
            events.turn_failed(error, code=FAILED, key=route.key, message_id=route.answers)
        finally:
            self._limit = None
            self.sent.set_result(None)

    async def _follow(self) -> AsyncIterator[AgentEvent]:
        while (event := await self._events.get()) is not None:
            yield event


class NowhereReply:
    """The answer of a turn whose channel this agent does not have; it stays recorded."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def begin(self, prepared: PreparedInvocation, /) -> None:
        """Do nothing."""

    def take(self, event: AgentEvent, /) -> None:
        """Do nothing."""

    def end(self, result: RunResult | None, /) -> None:
        """Tell that nobody gets it."""
        if result is not None:
            events.turn_failed(LookupError(f"no channel {self._kind!r}"), code=FAILED)
