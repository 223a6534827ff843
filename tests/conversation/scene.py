"""A scene: two callers of one conversation, from one agent or two, in one process or two."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from tests.conversation.station import LIMIT_S, Ended, Site, Station
from vitehub_chat.conversation.conversation import Conversation
from vitehub_chat.model.keys import ConversationKey, encode_key
from vitehub_chat.model.rows import Row
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.testing.clock import FakeClock


def key_of(thread: str, channel: str | None = None) -> ConversationKey:
    """Return the conversation of a thread."""
    return ConversationKey(None, "station", channel, thread)


def lock_of(thread: str, channel: str | None = None) -> str:
    """Return the lock of a thread."""
    return encode_key("thread", None, "station", channel, thread)


class Scene:
    """Two sites on one store.

    Attributes:
        first: A site.
        second: Another one, or the same where there is one agent.
        state: The store, for a look into it.
    """

    def __init__(
        self, first: Site, second: Site, state: SteppedAgentState, clock: FakeClock
    ) -> None:
        self.first = first
        self.second = second
        self.state = state
        self._clock = clock

    @property
    def sites(self) -> Sequence[Site]:
        """Every site once."""
        return list(dict.fromkeys([self.first, self.second]))

    async def advance(self, seconds: float) -> None:
        """Let time pass, for everybody."""
        self._clock.advance(seconds=seconds)
        for site in self.sites:
            await site.ask("follow_clock", seconds=seconds)

    async def waiting(self, count: int, lock_key: str = lock_of("t")) -> None:
        """Wait until so many messages wait for a lock."""
        async with asyncio.timeout(LIMIT_S):
            while await self.count_waiting(lock_key) != count:
                await asyncio.sleep(0)

    async def count_waiting(self, lock_key: str = lock_of("t")) -> int:
        """Count the messages that wait for a lock."""
        return await self.state.run_read(lambda tx: tx.entries.count_waiting(lock_key, 0))

    async def enqueue(
        self, site: Site, text: str, *, lock_key: str = lock_of("t"), **fields: Any
    ) -> asyncio.Task[Ended]:
        """Send a message and wait until it waits for its lock, behind the others."""
        before = await self.count_waiting(lock_key)
        task = site.send(text, **fields)
        await self.waiting(before + 1, lock_key)
        return task

    async def rows(self, thread: str = "t", channel: str | None = None) -> list[Row]:
        """Return what is stored in a thread."""
        page = await Conversation(self.state, key_of(thread, channel)).history(limit=100)
        return list(page.items)

    async def texts(self, thread: str = "t", channel: str | None = None) -> list[str]:
        """Return the texts that are stored in a thread, checking that no number is missing."""
        rows = await self.rows(thread, channel)
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        return [row.message.text for row in rows]

    async def calls(self) -> list[str]:
        """Return what the drivers answered; in order where there is one."""
        return [call for site in self.sites for call in await site.calls()]

    async def check_nothing_is_left(self, *threads: str, channel: str | None = None) -> None:
        """Check that no lock is held, nothing waits, and nobody is waited for."""
        assert [await site.leftovers() for site in self.sites] == [{} for _ in self.sites]
        names = threads or ("t",)
        found = await self.state.run_read(
            lambda tx: [
                (tx.locks.get(lock_of(name, channel)), entry.state)
                for name in names
                for entry in (*tx.entries.open_in(key_of(name, channel).encode()), None)
                if entry is not None or tx.locks.get(lock_of(name, channel)) is not None
            ]
        )
        assert found == []


async def shorts(*ends: asyncio.Task[Ended]) -> list[str]:
    """Return how some messages ended, in a few words each."""
    async with asyncio.timeout(LIMIT_S):
        return [ended.short for ended in await asyncio.gather(*ends)]


def station_options(strategy: str | Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Return the options of a `chat()` with a strategy."""
    return {"concurrency": strategy, **options}


def local_station(options: Mapping[str, Any], clock: FakeClock, *, stops: bool = True) -> Station:
    """Return a station of this process."""
    return Station(options, clock, stops=stops)
