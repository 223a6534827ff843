"""Host: takes requests of chat platforms and has an agent answer what they bring."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Self
from weakref import WeakKeyDictionary, WeakSet

from vitehub_chat.agent.agent import Agent
from vitehub_chat.channels.contract import Channel
from vitehub_chat.channels.desk import ChannelDesk, channels_by_kind
from vitehub_chat.channels.incoming import Incoming
from vitehub_chat.channels.responses import ACCEPTED, refuse, refuse_error
from vitehub_chat.channels.values import ChannelRequest, ChannelResponse, Inbound
from vitehub_chat.conversation import events
from vitehub_chat.conversation.control import guarded
from vitehub_chat.conversation.sweeping import Sweeper
from vitehub_chat.errors import ChatError, ConfigError, InputError

GRACE = timedelta(seconds=10)


class ChannelHost:
    """The channels of one agent, without a web server around them.

    A request is verified, then read, and what it brings is stored before it is answered; the turns
    run in tasks of their own. Usable from several event loops; each of them should end with
    `aclose`.

    Args:
        agent: The agent; its definition lists the channels.
        shutdown_grace: How long turns and answers may take to end by themselves in `aclose`.

    Raises:
        ConfigError: It lists no channel, two of one kind, or something that is none.
    """

    def __init__(self, agent: Agent, *, shutdown_grace: timedelta = GRACE) -> None:
        self.channels = channels_by_kind(agent.channels)
        if not self.channels:
            raise ConfigError(
                f"the agent {agent.name!r} lists none", path="channels", hint="add one"
            )
        self._agent = agent
        self._grace = shutdown_grace
        self._sweepers = WeakKeyDictionary[asyncio.AbstractEventLoop, Sweeper]()
        self._taking: set[asyncio.Task[ChannelResponse]] = set()
        self._closed = WeakSet[asyncio.AbstractEventLoop]()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def start(self) -> None:
        """Open the state and run what waits; the first request does so, too."""
        self._closed.discard(asyncio.get_running_loop())
        await self._desk()
        await self._sweep()

    async def handle(self, kind: str, request: ChannelRequest) -> ChannelResponse:
        """Take one request of a platform.

        200 once everything it brings is stored, or was refused for good; then it need not come
        again. 400 if it cannot be understood, 401 if it is not the platform's, 404 without such a
        channel or path, 405 if it is no POST. 409 and 429 if a conversation is busy, 500 if this
        side is wrong, 503 if the state does not answer or the host closes: it may come again.
        """
        channel = self.channels.get(kind)
        if channel is None or request.path not in channel.paths():
            return refuse(404, "not_found")
        if request.method != "POST":
            return refuse(405, "method_not_allowed", allow="POST")
        if asyncio.get_running_loop() in self._closed:
            return refuse(503, "state_closed")
        if not await _is_genuine(channel, request):
            return refuse(401, "unauthenticated")
        # Who is cancelled meanwhile, as when the platform hangs up, must not cut this in two.
        task = asyncio.create_task(self._take_safely(channel, request))
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        """Take no more requests in this event loop, and wait until what runs here is answered.

        Turns that take longer than the grace are recorded as interrupted. What waits stays stored.
        The agent is left open. Repeating does nothing; `start` begins anew.
        """
        loop = asyncio.get_running_loop()
        self._closed.add(loop)
        if taking := [task for task in tuple(self._taking) if task.get_loop() is loop]:
            await asyncio.wait(taking)
        sweeper = self._sweepers.pop(loop, None)
        if sweeper is not None:
            await sweeper.__aexit__()
        await self._agent.runtime().settle(self._grace)

    async def _take_safely(self, channel: Channel, request: ChannelRequest) -> ChannelResponse:
        try:
            return await self._take(channel, request)
        except ChatError as error:
            return refuse_error(error)
        except Exception as error:  # noqa: BLE001 - told in the log, and not to the platform
            events.turn_failed(error, code="internal")
            return refuse(500, "internal")

    async def _take(self, channel: Channel, request: ChannelRequest) -> ChannelResponse:
        await self._sweep()
        found = await _parse(channel, request)
        incoming = Incoming(self._agent, channel, await self._desk())
        for inbound in found:
            try:
                await incoming.take(inbound)
            except InputError as error:
                # It would be wrong again: nothing is gained by having it sent again.
                if error.code != "empty_message":
                    events.turn_failed(error, code=error.code)
        return ACCEPTED

    async def _sweep(self) -> None:
        """Begin to sweep in this loop; no-op while it does."""
        loop = asyncio.get_running_loop()
        if loop not in self._sweepers:
            sweeper = self._sweepers[loop] = self._agent.sweeping()
            await sweeper.__aenter__()

    async def _desk(self) -> ChannelDesk:
        desk: ChannelDesk = await self._agent.runtime().desk()
        return desk


async def _is_genuine(channel: Channel, request: ChannelRequest) -> bool:
    """Ask the channel; one that cannot tell has not verified it."""
    try:
        with guarded():
            return await channel.verify(request) is True
    except Exception as error:  # noqa: BLE001 - told in the log; what is not verified is refused
        events.turn_failed(error, code="unauthenticated")
        return False


async def _parse(channel: Channel, request: ChannelRequest) -> Sequence[Inbound]:
    try:
        return await channel.parse(request)
    except ValueError as error:
        raise InputError("the request cannot be understood", path="body") from error
