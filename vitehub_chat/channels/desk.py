"""Desk: what one agent does for its channels, whoever carries out their turns."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

from vitehub_chat.channels.contract import NEEDED, Channel
from vitehub_chat.channels.delivery import Delivery, NowhereReply, Route
from vitehub_chat.channels.history import Asked, Histories
from vitehub_chat.channels.messages import conversation_of, read_reply_to
from vitehub_chat.conversation.outlet import Reply
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.forking import ForkSafeLock
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import ChatPolicy
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.results import RunResult
from vitehub_chat.state.contract import AgentState

_KIND = re.compile(r"[A-Za-z0-9_-]+")


class ChannelDesk:
    """Brings messages of channels their history, and their answers to the channels.

    Answers of one thread are posted one after the other, in the order of their turns.
    """

    def __init__(
        self,
        *,
        agent: str,
        channels: Sequence[Channel],
        policy: ChatPolicy,
        state: AgentState | None,
        clock: Clock,
    ) -> None:
        self.channels = channels_by_kind(channels)
        self.histories = Histories(policy, state, clock)
        self._agent = agent
        self._policy = policy
        self._lock = ForkSafeLock()
        self._last: dict[ConversationKey, Future[None]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def supply(self, request: TurnRequest, /, *, group: Sequence[TurnRequest]) -> TurnRequest:
        """Return the request with the earlier messages of its thread."""
        kind, target = read_reply_to(request.reply_to or {})
        channel = self.channels.get(kind)
        if channel is None:
            return request
        return await self.histories.supply(
            Asked(
                key=conversation_of(self._agent, kind, target),
                channel=channel,
                target=target,
                request=request,
                group=[each.current for each in group],
            )
        )

    def key_of(self, request: TurnRequest) -> ConversationKey:
        """Return the conversation of a request."""
        return conversation_of(self._agent, *read_reply_to(request.reply_to or {}))

    def open(self, request: TurnRequest, /) -> Reply:
        """Return where the answer of a request goes."""
        kind, target = read_reply_to(request.reply_to or {})
        channel = self.channels.get(kind)
        if channel is None:
            return NowhereReply(kind)
        route = Route(
            key=conversation_of(self._agent, kind, target),
            channel=channel,
            target=target,
            answers=request.current.id,
        )
        return Delivery(route, self._policy.reply, start=self._start, ended=self._remember)

    async def settle(self, grace: timedelta) -> None:
        """Wait until the answers of this loop are posted, but no longer than `grace`."""
        if mine := self._mine():
            await asyncio.wait(mine, timeout=grace.total_seconds())

    async def aclose(self) -> None:
        """Give up what is still being posted."""
        mine = self._mine()
        for task in mine:
            task.cancel()
        if mine:
            await asyncio.wait(mine)

    def _start(self, delivery: Delivery) -> None:
        key = delivery.route.key
        with self._lock:
            previous, self._last[key] = self._last.get(key), delivery.sent
        task = asyncio.create_task(delivery.send(previous))
        self._sending.add(task)

        def forget(ended: asyncio.Task[Any]) -> None:
            self._sending.discard(ended)
            with self._lock:
                if self._last.get(key) is delivery.sent:
                    del self._last[key]

        task.add_done_callback(forget)

    def _remember(self, route: Route, result: RunResult) -> None:
        cache = self.histories.cache
        if cache is not None and result.message is not None and result.status != "error":
            cache.insert_after(route.key, route.answers, result.message)

    def _mine(self) -> list[asyncio.Task[None]]:
        loop, asking = asyncio.get_running_loop(), asyncio.current_task()
        sending = tuple(self._sending)
        return [task for task in sending if task.get_loop() is loop and task is not asking]


def channels_by_kind(channels: Sequence[Channel]) -> Mapping[str, Channel]:
    """Return the channels of an agent by their kinds.

    Raises:
        ConfigError: One of them is no channel, or two have one kind.
    """
    found: dict[str, Channel] = {}
    for index, channel in enumerate(channels):
        path = f"channels[{index}]"
        missing = [name for name in NEEDED if not hasattr(channel, name)]
        if missing:
            raise ConfigError(
                f"{type(channel).__name__} is no channel: it lacks {', '.join(missing)}",
                path=path,
                hint="see vitehub_chat.channels.contract.Channel",
            )
        if not _KIND.fullmatch(channel.kind):
            raise ConfigError(
                "has a kind that is no name", path=path, hint="use letters, digits, - _"
            )
        if channel.kind in found:
            raise ConfigError(
                f"is a second channel of kind {channel.kind!r}",
                path=path,
                hint="give one of them another kind",
            )
        found[channel.kind] = channel
    return found
