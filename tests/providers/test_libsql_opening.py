"""Opening a state on a libSQL server by URL, client and agent; and what is refused."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import libsql_client  # type: ignore[import-untyped]
import pytest

from tests.providers.libsql_helpers import Loopback, forward_to
from tests.providers.sqld_server import SigningKey, SqldServer, SqldServers, free_port
from vitehub_chat import chat, define_agent, run_agent_trigger
from vitehub_chat.errors import (
    ConfigError,
    MissingDependencyError,
    StateClosedError,
    StateError,
    StateUnavailableError,
)
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.libsql import create_libsql_agent_state
from vitehub_chat.state.opening import open_agent_state
from vitehub_chat.state.values import NewRow, PageRequest, SessionRequest

KEY = ConversationKey(None, "support", "portal", "t1")
SESSION = SessionRequest(conversation=KEY)


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    """Give each test tables of its own."""
    return f"t{abs(hash(request.node.nodeid))}_"


async def append(state: AgentState, *texts: str) -> None:
    rows = [
        NewRow(message=Message(text, "user", ({"type": "text", "text": text},))) for text in texts
    ]
    await state.transcripts.append(SESSION, rows=rows)


async def texts_in(state: AgentState) -> list[str]:
    page = await state.transcripts.page(KEY, request=PageRequest(limit=100))
    return [row.message.text for row in page.items]


def as_libsql(url: str) -> str:
    return f"{url.replace('http://', 'LIBSQL://')}?tls=0"


def as_socket(url: str) -> str:
    return url.replace("http://", "ws://")


@pytest.mark.service
@pytest.mark.parametrize("spell", [str, as_libsql, as_socket])
async def test_what_was_stored_is_there_when_it_is_opened_again(
    sqld: SqldServer, prefix: str, spell: Callable[[str], str]
) -> None:
    for text in ("a", "b"):
        async with open_agent_state(spell(sqld.url), table_prefix=prefix) as state:
            assert state.features == {"durable", "search", "shared", "server_time"}
            await append(state, text)
    async with open_agent_state(sqld.url, table_prefix=prefix) as state:
        assert await texts_in(state) == ["a", "b"]


@pytest.mark.service
async def test_turns_over_a_server_remember_what_was_said(sqld: SqldServer, prefix: str) -> None:
    agent = define_agent(
        name="support",
        driver=lambda call: " ".join(message.text for message in call.messages),
        capabilities=[chat(trigger_history={"source": "transcript", "max_messages": 20})],
        state={"url": as_libsql(sqld.url), "table_prefix": prefix},
    )
    answers = []
    async with agent:
        for said in ("one", "two", "three"):
            message = {"id": said, "role": "user", "parts": [{"type": "text", "text": said}]}
            run = {"channelId": "portal", "threadId": "t1"}
            given = {"messages": [message], "run": run}
            answers.append((await run_agent_trigger(agent, "chat.message", given)).text)

    assert answers == ["one", "one one two", "one one two one one two three"]


@pytest.mark.service
async def test_an_append_is_one_request_and_a_page_another(sqld: SqldServer, prefix: str) -> None:
    async with (
        Loopback(forward_to(sqld.url)) as proxy,
        open_agent_state(proxy.url, table_prefix=prefix) as state,
    ):
        await append(state, "a")
        before = len(proxy.received)
        await append(state, "b")
        appended = len(proxy.received)
        await texts_in(state)
        read = len(proxy.received)

    assert (appended - before, read - appended) == (1, 1)


@pytest.mark.service
async def test_a_client_of_the_users_serves_and_stays_open(sqld: SqldServer, prefix: str) -> None:
    client = libsql_client.create_client(as_socket(sqld.url))
    async with create_libsql_agent_state(client=client, table_prefix=prefix) as state:
        await append(state, "a", "b")
        with pytest.raises(StateError):
            await state.transcripts.append(
                SESSION,
                rows=[
                    NewRow(
                        message=Message("c", "user", ({"type": "text", "text": "x" * 5_000_001},))
                    )
                ],
            )
        await append(state, "c")
        assert await texts_in(state) == ["a", "b", "c"]
    with pytest.raises(StateClosedError):
        await append(state, "d")

    assert not client.closed
    await client.close()


@pytest.mark.service
async def test_a_socket_that_was_lost_is_opened_again(own_sqld: SqldServer) -> None:
    async with open_agent_state(as_socket(own_sqld.url)) as state:
        await append(state, "a")
        await asyncio.to_thread(own_sqld.restart)
        await append(state, "b")

        assert await texts_in(state) == ["a", "b"]


@pytest.mark.service
async def test_over_a_socket_a_refused_token_is_replaced_or_told(sqld_servers: SqldServers) -> None:
    key = SigningKey()
    server = sqld_servers.start(key=key)
    given = iter([SigningKey().token(), key.token()])
    async with open_agent_state(as_socket(server.url), auth_token=lambda: next(given)) as state:
        await append(state, "a")

    wrong = SigningKey().token()
    for token in (wrong, None):
        with pytest.raises(ConfigError) as caught:
            async with open_agent_state(as_socket(server.url), auth_token=token):
                pass
        assert caught.value.code == "unauthorized"
        assert wrong not in str(caught.value)
    server.kill()


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_a_server_that_is_away_is_unavailable_at_open_which_may_be_repeated(
    scheme: str,
) -> None:
    state = open_agent_state(f"{scheme}://127.0.0.1:{free_port()}", busy_timeout_ms=50)
    for _ in range(2):
        with pytest.raises(StateUnavailableError):
            await state.__aenter__()
    await state.aclose()


async def test_a_file_is_opened_through_the_same_door(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/state.db"
    transcripts = {"retention": "forever"}
    async with create_libsql_agent_state(url=url, transcripts=transcripts) as state:
        await append(state, "a")

        assert await texts_in(state) == ["a"]


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({}, "url"),
        ({"url": "http://127.0.0.1", "client": 5}, "url"),
        ({"url": "postgresql://127.0.0.1"}, "url"),
        ({"url": "memory:"}, "url"),
        ({"client": 5}, "state.client"),
        ({"url": "libsql://"}, "state.url"),
        ({"url": "libsql://h", "table_prefix": "a-b_"}, "state.table_prefix"),
        ({"url": "libsql://h", "tableprefix": "a"}, "state.tableprefix"),
        (
            {"url": "libsql://h", "transcripts": {"retention": "soon"}},
            "state.transcripts.retention",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_is_a_configuration_error(options: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        create_libsql_agent_state(**options)

    assert caught.value.path == path


async def test_a_token_beside_a_client_is_a_configuration_error() -> None:
    client = libsql_client.create_client("http://127.0.0.1:9")
    with pytest.raises(ConfigError) as caught:
        create_libsql_agent_state(client=client, auth_token="s3cret")  # noqa: S106  made up
    await client.close()

    assert caught.value.path == "state.auth_token"


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [("libsql://h", "aiohttp", "libsql"), ("ws://h", "libsql_client", "libsql-client")],
)
def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, url: str, module: str, extra: str
) -> None:
    for name in [
        name for name in sys.modules if name.startswith("vitehub_chat.state.providers.libsql.")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError) as caught:
        open_agent_state(url)

    assert caught.value.extra == extra
