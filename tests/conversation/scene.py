"""A scene: two callers of one conversation, from one agent or two, in one process or two."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from tests.conversation.station import LIMIT_S, Ended, Site
from vitehub_chat.conversation.conversation import Conversation
from vitehub_chat.conversation.lease import LEASE
from vitehub_chat.model.keys import ConversationKey, encode_key
from vitehub_chat.model.rows import Row
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import Grant
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
            await site.advance(seconds)

    async def take(self, lock_key: str = lock_of("t")) -> Grant | None:
        """Take a lock for who waits longest, as another process would that comes along."""
        return await self.state.turns.take(lock_key, owner="somebody", lease=LEASE)

    @staticmethod
    def lock_of_channel(channel: str) -> str:
        """Return the lock of a channel."""
        return encode_key("channel", None, "station", channel)

    async def waiting(self, count: int, lock_key: str = lock_of("t")) -> None:
        """Wait until so many messages wait for a lock."""
        async with asyncio.timeout(LIMIT_S):
            while await self.count_waiting(lock_key) != count:  # noqa: ASYNC110 - a store tells nobody
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
        return await rows_of(self.state, thread, channel)

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
        for name in threads or ("t",):
            await check_free(self.state, name, channel)


async def rows_of(state: AgentState, thread: str, channel: str | None = None) -> list[Row]:
    """Return what is stored in a thread."""
    page = await Conversation(state, key_of(thread, channel)).history(limit=100)
    return list(page.items)


async def check_free(state: SteppedAgentState, thread: str, channel: str | None = None) -> None:
    """Check that no turn of a thread holds its lock or waits for it."""
    assert await state.run_read(lambda tx: _left(tx, thread, channel)) == []


def _left(tx: Transaction, thread: str, channel: str | None) -> list[str]:
    lock = tx.locks.get(lock_of(thread, channel))
    entries = tx.entries.open_in(key_of(thread, channel).encode())
    return [*(entry.state for entry in entries), *([] if lock is None else ["locked"])]


async def shorts(*ends: asyncio.Task[Ended]) -> list[str]:
    """Return how some messages ended, in a few words each."""
    async with asyncio.timeout(LIMIT_S):
        return [ended.short for ended in await asyncio.gather(*ends)]
