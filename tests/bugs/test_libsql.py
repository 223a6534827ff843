"""Remote libSQL: idle connections, lost streams, refused tokens, and one suite for all."""

from __future__ import annotations

import logging
import sqlite3
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bugs.support import agent_on, say, texts_of
from tests.providers.libsql_helpers import Answer, Loopback, Relay, forward_to, in_turn
from tests.providers.libsql_helpers import say as answer
from tests.providers.sqld_server import SqldServer
from vitehub_chat import open_agent_state
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.providers.libsql import open_libsql
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.testing.checks import contents, transcripts
from vitehub_chat.testing.checks.material import append, new_key, stored_ids
from vitehub_chat.testing.conformance import run_checks

PREFIX = "bugs_"


@pytest.mark.service
@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_L118_a_server_that_drops_idle_connections_is_connected_to_again(
    sqld: SqldServer, scheme: str
) -> None:
    async with Relay(sqld.port) as relay:
        url = relay.url.replace("http", scheme)
        async with open_agent_state(url, table_prefix=PREFIX) as state:
            key = new_key()
            for number in range(3):
                await append(state, key, f"m{number}")
                await relay.drop()
                assert await stored_ids(state, key) == [f"m{each}" for each in range(number + 1)]
                await relay.drop()
    assert relay.accepted > 3


@pytest.mark.service
@pytest.mark.parametrize(
    "lost",
    [
        answer(400, "Received an invalid baton"),
        answer(400, '{"code":"STREAM_EXPIRED","message":"The stream has expired"}'),
        answer(404, '{"error":"stream not found: 7e3a:1"}'),
        answer(410, '{"message":"stream is closed"}'),
    ],
    ids=["invalid", "expired", "not found", "closed"],
)
async def test_L176_a_lost_stream_is_opened_again_whatever_it_is_called(
    sqld: SqldServer, lost: Answer
) -> None:
    forward = forward_to(sqld.url)
    answers = in_turn(forward, forward, *[lost, forward] * 2)
    async with open_agent_state(sqld.url, table_prefix=PREFIX) as there:
        key = new_key()
        await append(there, key, "m1")
    async with Loopback(answers) as proxy:
        async with open_agent_state(proxy.url, table_prefix=PREFIX) as state:
            await append(state, key, "m2")
            assert await stored_ids(state, key) == ["m1", "m2"]
        assert len(proxy.received) > 6


@pytest.mark.service
async def test_L247_no_request_relies_on_the_stream_of_another(sqld: SqldServer) -> None:
    async with Loopback(forward_to(sqld.url)) as proxy:
        async with open_agent_state(proxy.url, table_prefix=PREFIX) as state:
            assert await texts_of(agent_on(state), "new") == []
            await say(agent_on(state), "A", "L247")
        assert proxy.received
        for each in proxy.received:
            assert each.body.startswith(b'{"baton":null,')
            assert each.body.endswith(b'{"type":"close"}]}')


@pytest.mark.parametrize(
    ("status", "code", "requests"),
    [(401, "unauthorized", 1), (404, "config_error", 3), (308, "config_error", 1)],
)
async def test_L295_a_server_that_moved_is_a_typed_error_at_once_without_the_token(
    status: int, code: str, requests: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with Loopback(answer(status, headers={"location": "https://elsewhere"})) as server:
        state = open_agent_state(f"{server.url}?authToken=s3cret")
        with pytest.raises(ConfigError) as caught:
            await state.__aenter__()
        await state.aclose()

    assert (caught.value.code, len(server.received)) == (code, requests)
    assert server.received[0].headers["authorization"] == "Bearer s3cret"
    told = "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in f"{told} {state!r} {caplog.text}"


@pytest.mark.service
async def test_L155_one_suite_of_checks_holds_for_a_file_and_a_server(
    sqld: SqldServer, path: Path
) -> None:
    checks = [*transcripts.group.checks, *contents.group.checks]

    async def failed(open_state: Callable[..., AgentState]) -> dict[str, object]:
        results = await run_checks(open_state, checks=checks)
        return {each.name: each.error for each in results if each.outcome != "ok"}

    def on_server(clock: Clock, **options: Any) -> AgentState:
        return open_libsql(sqld.url, clock=clock, table_prefix=PREFIX, **options)

    def on_file(clock: Clock, **options: Any) -> AgentState:
        return open_sqlite(f"file:{path}", clock=clock, **options)

    assert (await failed(on_file), await failed(on_server)) == ({}, {})


class StrictConnection(sqlite3.Connection):
    """A connection that commits only what was read to its end, as stricter databases do.

    Attributes:
        read: How many statements with RETURNING were.
    """

    read = 0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._returning: list[sqlite3.Cursor] = []

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql == "COMMIT":
            left = [each for each in self._returning if each.fetchone() is not None]
            assert left == []
            type(self).read += len(self._returning)
            self._returning.clear()
        cursor = super().execute(sql, *values)
        if "RETURNING" in sql:
            self._returning.append(cursor)
        return cursor


async def test_L223_what_statements_return_is_read_before_the_commit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def connect_strictly(*args: Any, **options: Any) -> sqlite3.Connection:
        return connect(*args, factory=StrictConnection, **options)

    monkeypatch.setattr(sqlite3, "connect", connect_strictly)
    async with open_agent_state(f"file:{path}") as state:
        agent = agent_on(state)
        for text in ("A", "B"):
            await say(agent, text)
        assert await texts_of(agent) == ["A", "re A", "B", "re B"]
        await agent.conversation("t").clear()
    assert StrictConnection.read > 3
