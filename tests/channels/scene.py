"""A scene: an agent on a scripted platform, whose driver stops where it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from tests.conversation.station import LIMIT_S, SteppedDriver
from vitehub_chat import Agent, Message, chat, define_agent, open_agent_state
from vitehub_chat.channels.host import ChannelHost
from vitehub_chat.channels.values import Inbound
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import Row
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock
from vitehub_chat.testing.scripted_channel import ScriptedChannel, ScriptedPlatform

THREAD = {"source": "thread", "max_messages": 50}


class Scene:
    """An agent named `station` with one scripted channel, and its host.

    Attributes:
        driver: What answers; by default `D` after B is answered `D[B]`, at once.
    """

    def __init__(
        self,
        url: str | None,
        clock: FakeClock,
        *,
        driver: Any = None,
        stops: bool = False,
        channel: ScriptedChannel | None = None,
        grace: timedelta = timedelta(seconds=10),
        retention: int | None = None,
        **options: Any,
    ) -> None:
        self.driver: Any = driver or SteppedDriver(stops=stops)
        self.channel = channel or ScriptedChannel()
        self.agent: Agent = define_agent(
            name="station",
            driver=self.driver,
            channels=[self.channel],
            capabilities=[chat(**{"trigger_history": THREAD, **options})],
        )
        self.host = ChannelHost(self.agent, shutdown_grace=grace)
        self.state: AgentState | None = None
        self._url = url
        self._clock = clock
        self._kept = {} if retention is None else {"transcripts": {"retention": retention}}

    @property
    def platform(self) -> ScriptedPlatform:
        """The platform behind the channel."""
        return self.channel.platform

    async def open(self) -> None:
        """Open the state."""
        if self._url is not None:
            url, _, prefix = self._url.partition("#")
            options = {"table_prefix": prefix} if prefix else {}
            self.state = await open_agent_state(
                url, clock=self._clock, **options, **self._kept
            ).__aenter__()
            self.agent.state = self.state

    async def close(self) -> None:
        """Close host, agent and state; repeating does nothing."""
        await self.host.aclose()
        await self.agent.aclose()
        if self.state is not None:
            await self.state.aclose()

    async def tell(self, *happened: Inbound) -> int:
        """Have the platform tell what happened, and return the status of the answer."""
        async with asyncio.timeout(LIMIT_S):
            answer = await self.host.handle(self.channel.kind, self.channel.request(*happened))
        return answer.status

    async def pause(self) -> None:
        """Look after nothing any more, like a process that is paused or dead."""
        await self.host._sweepers[asyncio.get_running_loop()].__aexit__()

    async def begun(self, text: str) -> None:
        """Wait until the driver has a message."""
        async with asyncio.timeout(LIMIT_S):
            await self.driver.begun(text).wait()

    def release(self, *texts: str) -> None:
        """Let the driver go on with some messages, now or when it gets them."""
        for text in texts:
            self.driver.go_on(text).set()

    async def posted(self, *texts: str, thread: str = "t1") -> None:
        """Wait until the posts of a thread say these texts."""
        await self.platform.posted(*texts, thread=thread)

    async def turns_over(self) -> None:
        """Wait until no turn runs in the background any more."""
        engine = self.agent.runtime()._engine
        assert engine is not None
        async with asyncio.timeout(LIMIT_S):
            while tasks := [task for task, _ in engine._background]:
                await asyncio.wait(tasks)
                await asyncio.sleep(0)

    async def quiet(self) -> None:
        """Wait until no turn runs in the background and nothing is posted any more."""
        desk = await self.agent.runtime().desk()
        await self.turns_over()
        async with asyncio.timeout(LIMIT_S):
            while sending := tuple(desk._sending):
                await asyncio.wait(sending)

    def key(self, thread: str = "t1", channel: str = "c1") -> ConversationKey:
        """Return the conversation of a thread."""
        return ConversationKey(None, "station", f"{self.channel.kind}:{channel}", thread)

    async def rows(self, thread: str = "t1", channel: str = "c1") -> list[Row]:
        """Return what is stored of a thread."""
        page = await self.agent.conversation(self.key(thread, channel)).history(limit=100)
        return list(page.items)

    async def texts(self, thread: str = "t1", channel: str = "c1") -> list[str]:
        """Return the texts that are stored of a thread, or remembered without a state."""
        if self.state is not None:
            return [row.message.text for row in await self.rows(thread, channel)]
        return [message.text for message in await self.cached(thread, channel)]

    async def cached(self, thread: str = "t1", channel: str = "c1") -> tuple[Message, ...]:
        """Return what is remembered of a thread without a state."""
        desk = await self.agent.runtime().desk()
        found: tuple[Message, ...] = desk.histories.cache.messages(self.key(thread, channel))
        return found


SetScene = Callable[..., Awaitable[Scene]]
