"""What is large: values of megabytes, answers of more than ten, and twenty beside small writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from tests.providers.libsql_helpers import Answer, Loopback, Received, driving, forward_to, say
from tests.providers.sqld_server import SqldServer
from vitehub_chat.errors import StateError
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.opening import open_agent_state
from vitehub_chat.state.providers.libsql.limits import CAPABILITIES, CAPABILITIES_OF_SOCKETS
from vitehub_chat.state.sql.driver import Statement
from vitehub_chat.state.values import PageRequest, SessionRequest, WindowRequest
from vitehub_chat.testing.checks.lines import new_line
from vitehub_chat.testing.checks.material import append, new_key, row, stored_ids

pytestmark = pytest.mark.service

MB = 1_000_000
PREFIX = "sizes_"
PARTS = "SELECT value, :part FROM json_each('[1,2,3]')"
INSERT = "INSERT INTO things (value) VALUES (:value)"


def of_version_2(url: str) -> Answer:
    """Return what answers as the server at a URL would without version 3."""
    forward, missing = forward_to(url), say(404)

    async def answer(received: Received) -> web.StreamResponse | None:
        return await (missing if received.path.startswith("/v3/") else forward)(received)

    return answer


def as_socket(url: str) -> str:
    return url.replace("http://", "ws://")


async def append_megabytes(state: AgentState, key: Any, count: int) -> None:
    for number in range(count):
        rows = [row(f"m{number}", "é" * (MB // 2))]
        await state.transcripts.append(SessionRequest(conversation=key), rows=rows)


async def test_an_answer_of_more_than_ten_megabytes_comes_row_by_row(sqld: SqldServer) -> None:
    part = "é" * (2 * MB)
    expected = [(number, part) for number in (1, 2, 3)]
    async with Loopback(forward_to(sqld.url)) as proxy, driving(proxy.url) as driver:
        alone = await driver.execute(PARTS, {"part": part})
        together = await driver.batch([(PARTS, {"part": part}), ("SELECT :part", {"part": "a"})])

    assert (alone, together) == (expected, [expected, [("a",)]])
    paths = [received.path for received in proxy.received]
    assert paths == ["/v3/pipeline", "/v3/cursor", "/v3/pipeline"] * 2
    closed = [received for received in proxy.received[2::3] if received.parts == []]
    assert len(closed) == 2


async def test_writes_whose_answers_are_that_large_happen_once(sqld: SqldServer) -> None:
    part = "x" * (4 * MB)
    async with driving(sqld.url) as driver:
        await driver.batch(
            [
                ("DROP TABLE IF EXISTS things", {}),
                ("CREATE TABLE things (id INTEGER PRIMARY KEY, value)", {}),
            ]
        )
        large: list[Statement] = [(INSERT, {"value": "large"}), (PARTS, {"part": part})]
        small: list[Statement] = [(INSERT, {"value": "small"}), ("SELECT 1", {})]
        both = await asyncio.gather(*map(driver.batch, (small, large, small, large)))
        stored = await driver.execute("SELECT value FROM things ORDER BY value", {})

    assert [len(rows) for _, rows in both] == [1, 3, 1, 3]
    assert stored == [("large",), ("large",), ("small",), ("small",)]


async def test_without_version_3_a_larger_answer_is_a_typed_error(sqld: SqldServer) -> None:
    async with Loopback(of_version_2(sqld.url)) as proxy, driving(proxy.url) as driver:
        with pytest.raises(StateError, match="an answer is larger") as caught:
            await driver.execute(PARTS, {"part": "x" * (4 * MB)})

    assert caught.value.code == "too_large"


async def test_windows_pages_and_exports_of_more_than_ten_megabytes_come_back(
    sqld: SqldServer,
) -> None:
    ids = [f"m{number}" for number in range(12)]
    async with open_agent_state(sqld.url, table_prefix=PREFIX) as state:
        line = new_line(state)
        await append_megabytes(state, line.key, 12)
    async with open_agent_state(sqld.url, table_prefix=PREFIX) as other:
        page = await other.transcripts.page(line.key, request=PageRequest(limit=12))
        exported = [each async for each in other.transcripts.export(line.key)]
    # The first turn of a process also reserves numbers, so that what it looks up is a write.
    async with open_agent_state(sqld.url, table_prefix=PREFIX) as another:
        there = line.seen_by(another)
        grant = await there.start("a")
        recorded = await there.record(grant, given=[row("new")], window=WindowRequest(limit=12))

    assert [each.message.id for each in page.items] == ids
    assert [each.message.id for batch in exported for each in batch.rows] == ids
    assert [each.message.id for each in recorded.window.shown] == ids


@pytest.mark.parametrize("kind", ["version 2", "socket"])
async def test_where_answers_are_bounded_pages_and_exports_shrink_once(
    sqld: SqldServer, kind: str
) -> None:
    async with Loopback(of_version_2(sqld.url)) as proxy:
        url = proxy.url if kind == "version 2" else as_socket(sqld.url)
        async with open_agent_state(url, table_prefix=PREFIX) as state:
            key = new_key()
            await append_megabytes(state, key, 12)
            found: list[str | None] = []
            cursor: str | None = None
            while cursor is not None or not found:
                request = PageRequest(limit=40, cursor=cursor)
                page = await state.transcripts.page(key, request=request)
                found = [*(each.message.id for each in page.items), *found]
                cursor = page.older_cursor
            exported = [each async for each in state.transcripts.export(key)]

    assert found == [f"m{number}" for number in range(12)]
    assert [each.message.id for batch in exported for each in batch.rows] == found


@pytest.mark.parametrize(
    ("spell", "most"),
    [(str, CAPABILITIES.max_value_bytes), (as_socket, CAPABILITIES_OF_SOCKETS.max_value_bytes)],
    ids=["http", "socket"],
)
async def test_a_text_that_is_larger_than_the_limit_is_refused_before_it_is_sent(
    sqld: SqldServer, spell: Callable[[str], str], most: int
) -> None:
    async with open_agent_state(spell(sqld.url), table_prefix=PREFIX) as state:
        key = new_key()
        await append(state, key, "m1")
        rows = [row("m2", "x" * MB), row("m3", "x" * most)]
        with pytest.raises(StateError, match="this database takes at most") as caught:
            await state.transcripts.append(SessionRequest(conversation=key), rows=rows)
        almost = [row("m4", "\n" * ((most - 100) // 2))]
        await state.transcripts.append(SessionRequest(conversation=key), rows=almost)

        assert await stored_ids(state, key) == ["m1", "m4"]
    assert caught.value.code == "too_large"
