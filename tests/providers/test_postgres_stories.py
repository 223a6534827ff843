"""The Agent State in PostgreSQL answers like the one in memory, alone and overtaken."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.providers.postgres_server import CountingDriver, Place, PostgresServer
from tests.providers.seam_stories import Call, Side, calls, pass_time, stories, tell_alike
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.memory import open_memory
from vitehub_chat.state.sql import SqlAgentState
from vitehub_chat.state.sql.driver import Columns, Statement
from vitehub_chat.testing.clock import FakeClock

pytestmark = pytest.mark.service

RETENTIONS: tuple[dict[str, Any], ...] = ({}, {"transcripts": {"retention": "40s"}})
TABLES = """$locks, $entries, $conversations, $sessions, $rows, $summaries, $documents, $scopes,
$writes"""

quick = settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.generate],
)


class LateDriver(CountingDriver):
    """A driver that lets somebody else be faster than its next write.

    Attributes:
        rival: What is faster, once.
    """

    rival: Any = None

    async def batch(self, statements: Sequence[Statement], /) -> Sequence[Sequence[Columns]]:
        if self.rival is not None and not statements[0][0].startswith("SELECT"):
            rival, self.rival = self.rival, None
            await rival()
        return await super().batch(statements)


@pytest.fixture(scope="module")
def store(postgres: PostgresServer) -> Place:
    """Give the tables that all stories share, one after the other."""
    return Place(postgres)


class Pair:
    """Two states of one store that has nothing in it, and one in memory."""

    def __init__(self, store: Place, options: dict[str, Any]) -> None:
        self.clock = FakeClock()
        self.driver = LateDriver(store.server)
        checked = StateOptions.from_mapping({**options, "table_prefix": store.prefix})
        self.memory = open_memory("memory:", clock=self.clock, **options)
        self.states = [
            SqlAgentState(driver, clock=self.clock, options=checked)
            for driver in (self.driver, CountingDriver(store.server))
        ]
        self._store = store

    async def __aenter__(self) -> Pair:
        await self.memory.__aenter__()
        for state in self.states:
            await state.__aenter__()
        await asyncio.to_thread(self._store.query, f"TRUNCATE {TABLES}")
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for state in (*self.states, self.memory):
            await state.aclose()


async def compare(store: Place, story: Sequence[tuple[Call, int]], options: dict[str, Any]) -> None:
    async with Pair(store, options) as pair:
        await tell_alike(story, pair.clock, pair.memory, Side(pair.states))


async def interleave(
    store: Place, story: Sequence[tuple[Call, int]], call: Call, faster: Call
) -> None:
    """Make a call beside another one that is faster: it is as if that had come before."""
    async with Pair(store, {}) as pair:
        side, other = Side([pair.memory]), Side(pair.states)
        for each, seconds in story:
            pass_time(pair.clock, pair.memory, seconds)
            assert await other.tell(each) == await side.tell(each)
        pass_time(pair.clock, pair.memory, 0)
        answers = []
        beside, late = other.beside(), side.beside()

        async def overtake() -> None:
            answers.append(await beside.tell(faster))

        pair.driver.rival = overtake
        answer = await other.tell(call)
        if answers:
            assert answers == [await side.tell(faster)]
        assert answer == await late.tell(call)


@pytest.mark.parametrize("options", RETENTIONS, ids=["kept", "expiring"])
@given(story=stories)
@quick
def test_two_objects_of_one_database_answer_like_memory(
    store: Place, options: dict[str, Any], story: Sequence[tuple[Call, int]]
) -> None:
    asyncio.run(compare(store, story, options))


@given(story=stories, call=calls("slow"), faster=calls("fast"))
@quick
def test_a_call_that_was_overtaken_answers_as_if_it_came_later(
    store: Place, story: Sequence[tuple[Call, int]], call: Call, faster: Call
) -> None:
    asyncio.run(interleave(store, story, call, faster))
