"""Slow loads and scans: how much is read does not depend on how much is stored."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from tests.bugs.support import agent_on, change, say
from vitehub_chat.agent.agent import Agent
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.providers.sqlite.state import SqliteAgentState

TWICE = 2.0
"""What a read may cost more on a large store than on a small one; a scan costs hundreds."""


COPY_SESSION = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
INSERT INTO $sessions (scope, base, session_id, COLUMNS)
SELECT 'x' || i, NULL, NULL, COLUMNS FROM n, (SELECT * FROM $sessions LIMIT 1)
"""


class Effort:
    """Counts the instructions that SQLite carries out on the reader of a state."""

    def __init__(self, state: SqliteAgentState) -> None:
        self.instructions = 0
        self._engine: Any = state._engines[os.getpid()]

    async def of(self, call: Awaitable[Any]) -> int:
        """Return how many instructions a call takes."""
        connections = [
            worker._handle._connection for worker in (self._engine.reader, self._engine.writer)
        ]
        self.instructions = 0
        for connection in connections:
            connection.set_progress_handler(self._count, 1)
        await call
        for connection in connections:
            connection.set_progress_handler(None, 1)
        return self.instructions

    def _count(self) -> int:
        self.instructions += 1
        return 0


async def fill(agent: Agent, thread: str, count: int) -> None:
    conversation = agent.conversation(thread)
    parts = [{"type": "text", "text": "some words that were said"}]
    for start in range(0, count, 5000):
        rows = [
            {"id": f"m{number}", "role": "user" if number % 2 else "assistant", "parts": parts}
            for number in range(start, min(start + 5000, count))
        ]
        await conversation.append(rows)


@pytest.mark.slow
async def test_L203_a_window_of_twenty_reads_no_more_of_fifty_thousand_rows(path: Path) -> None:
    async with open_sqlite(f"file:{path}", durability="normal") as state:
        window = {"source": "transcript", "max_messages": 20}
        agent = agent_on(state, trigger_history=window)
        await fill(agent, "small", 40)
        await fill(agent, "large", 50_000)
        effort = Effort(state)
        await say(agent, "warm", "other")
        await agent.conversation("other").history()
        small = await effort.of(say(agent, "A", "small"))
        large = await effort.of(say(agent, "A", "large"))
        assert large <= TWICE * small
        result = await say(agent, "B", "large")
        assert result.prepared is not None
        assert len(result.prepared.messages) == 20
        assert len(result.prepared.selection) <= 40
        await agent.aclose()


@pytest.mark.slow
async def test_L260_every_page_of_a_long_conversation_costs_the_same(path: Path) -> None:
    async with open_sqlite(f"file:{path}", durability="normal") as state:
        agent = agent_on(state)
        await fill(agent, "large", 10_000)
        effort = Effort(state)
        conversation = agent.conversation("large")
        await conversation.history()
        costs, seen, cursor = [], 0, None
        while True:
            page = await conversation.history(limit=50, cursor=cursor)
            if cursor is None or seen in {5000, 9000}:
                again = conversation.history(limit=50, cursor=cursor)
                costs.append(await effort.of(again))
            seen += len(page.items)
            cursor = page.older_cursor
            if cursor is None:
                break
        assert seen == 10_000
        assert max(costs) <= TWICE * min(costs)
        await agent.aclose()


@pytest.mark.slow
async def test_L268_listing_twenty_of_a_hundred_thousand_sessions_reads_twenty(path: Path) -> None:
    async with open_sqlite(f"file:{path}", durability="normal") as state:
        agent = agent_on(state)
        for number in range(30):
            await fill(agent, f"t{number}", 1)
        effort = Effort(state)
        await agent.conversations().sessions()
        few = await effort.of(agent.conversations().sessions(limit=20))
        columns = (
            "conversation_key, conversation, tenant, agent, user_key, chat_id, title,"
            " first_message_id, started_at, last_message_at, message_count, turn_count,"
            " generation, began_by_new"
        )
        copies = COPY_SESSION.replace("COLUMNS", columns)
        assert await asyncio.to_thread(change, path, copies) == 100_000
        for listing in (agent.conversations(), agent.conversations(user_key="somebody")):
            begun = time.perf_counter()
            many = await effort.of(listing.sessions(limit=20))
            assert many <= TWICE * few
            assert time.perf_counter() - begun < 5
        page = await agent.conversations().sessions(limit=20)
        assert len(page.items) == 20
        assert page.next_cursor is not None
        cost = effort.of(agent.conversations().sessions(limit=20, cursor=page.next_cursor))
        assert await cost <= TWICE * few
        await agent.aclose()
