"""Properties of pages: walking meets every row once, also while rows are added."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitehub_chat import Conversation, ConversationKey, HistoryPage, open_agent_state

COUNTS = st.integers(0, 12)
LIMITS = st.integers(1, 5)
ADDED = st.lists(st.integers(0, 3), max_size=6)


@contextmanager
def new_url(scheme: str) -> Iterator[str]:
    """Give the URL of a state that nobody else uses."""
    if scheme == "memory:":
        yield scheme
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield f"file:{folder}/state.db"


class Growing:
    """A conversation that grows now and then, as the schedule says."""

    def __init__(self, conversation: Conversation, schedule: list[int]) -> None:
        self.conversation = conversation
        self.stored: list[str] = []
        self._schedule = list(schedule)

    async def add(self, count: int) -> None:
        parts = [{"type": "text", "text": "x"}]
        ids = [f"m{len(self.stored) + number}" for number in range(1, count + 1)]
        messages = [{"id": each, "role": "user", "parts": parts} for each in ids]
        await self.conversation.append(messages)
        self.stored += ids

    @property
    def is_done(self) -> bool:
        return not self._schedule

    async def grow(self) -> None:
        if self._schedule:
            await self.add(self._schedule.pop())


def ids_of(page: HistoryPage) -> list[str | None]:
    return [row.message.id for row in page.items]


async def walk_older(growing: Growing, limit: int) -> None:
    page = await growing.conversation.history(limit=limit)
    expected, met = list(growing.stored), ids_of(page)
    while page.older_cursor is not None:
        await growing.grow()
        page = await growing.conversation.history(
            limit=limit, cursor=page.older_cursor, direction="older"
        )
        met = [*ids_of(page), *met]
    assert met == expected


async def walk_newer(growing: Growing, limit: int) -> None:
    page = await growing.conversation.history(limit=limit)
    while page.older_cursor is not None:
        page = await growing.conversation.history(limit=limit, cursor=page.older_cursor)
    met = ids_of(page)
    while not (growing.is_done and page.at_live_edge):
        await growing.grow()
        page = await growing.conversation.history(
            limit=limit, cursor=page.newer_cursor, direction="newer"
        )
        met += ids_of(page)
    assert met == growing.stored


async def walk_from_a_row(growing: Growing, limit: int) -> None:
    """The cursor of any row leads both ways."""
    rows = (await growing.conversation.history(limit=100)).items
    for index, row in enumerate(rows):
        for direction, expected in (
            ("older", growing.stored[max(index - limit, 0) : index]),
            ("newer", growing.stored[index + 1 : index + 1 + limit]),
        ):
            page = await growing.conversation.history(
                limit=limit,
                cursor=row.cursor,
                direction=direction,  # type: ignore[arg-type]
            )
            assert ids_of(page) == expected


@pytest.mark.parametrize("scheme", ["memory:", "file:"])
@pytest.mark.parametrize("walk", [walk_older, walk_newer, walk_from_a_row])
def test_a_walk_meets_every_row_once(scheme: str, walk: object) -> None:
    @settings(max_examples=50 if scheme == "memory:" else 8)
    @given(COUNTS, LIMITS, ADDED)
    def check(count: int, limit: int, schedule: list[int]) -> None:
        async def go(url: str) -> None:
            async with open_agent_state(url) as state:
                conversation = Conversation(state, ConversationKey(None, "a", None, "t"))
                growing = Growing(conversation, schedule)
                await growing.add(count)
                await walk(growing, limit)  # type: ignore[operator]

        with new_url(scheme) as url:
            asyncio.run(go(url))

    check()
