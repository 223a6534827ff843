"""What goes through `libsql_client`: servers of version 1 alone, and clients that were given."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import libsql_client  # type: ignore[import-untyped]
import pytest
from aiohttp import web

from tests.providers.libsql_helpers import Answer, Loopback, Received, forward_to, say
from tests.providers.sqld_server import SigningKey, SqldServer, SqldServers
from vitehub_chat.errors import ConfigError, StateError, StateUnavailableError
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.libsql import create_libsql_agent_state
from vitehub_chat.state.opening import open_agent_state
from vitehub_chat.testing.checks.material import append, new_key, stored_ids

PREFIX = "clients_"
KEY = new_key()


def of_version_1(url: str, base: str = "") -> Answer:
    """Return what answers as the server at a URL would without later versions."""
    forward, missing = forward_to(url, base=base), say(404)

    async def answer(received: Received) -> web.StreamResponse | None:
        is_known = received.path.startswith(f"{base}/v1/")
        return await (forward if is_known else missing)(received)

    return answer


async def add_one(state: AgentState) -> list[str]:
    key = new_key()
    await append(state, key, "m1", "m2")
    return await stored_ids(state, key)


@pytest.mark.service
@pytest.mark.parametrize("base", ["", "/base/path"])
async def test_a_server_of_version_1_alone_is_found_out(sqld: SqldServer, base: str) -> None:
    async with (
        Loopback(of_version_1(sqld.url, base)) as proxy,
        open_agent_state(f"{proxy.url}{base}", table_prefix=PREFIX) as state,
    ):
        assert await add_one(state) == ["m1", "m2"]

    paths = [received.path.removeprefix(base) for received in proxy.received]
    assert paths[:2] == ["/v3/pipeline", "/v2/pipeline"]
    assert set(paths[2:]) == {"/v1/batch"}


async def test_without_the_extra_a_server_of_version_1_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "vitehub_chat.state.providers.libsql.client_driver"
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "libsql_client", None)
    async with Loopback(say(404)) as server:
        with pytest.raises(ConfigError, match="needs the extra libsql-client"):
            async with open_agent_state(server.url):
                pass


async def test_a_server_without_any_version_is_a_configuration_error() -> None:
    async with Loopback(say(404)) as server:
        with pytest.raises(ConfigError) as caught:
            async with open_agent_state(server.url):
                pass

    assert caught.value.path == "state.url"
    tried = [received.path for received in server.received]
    assert tried == ["/v3/pipeline", "/v2/pipeline", "/v1/batch"]


@pytest.mark.service
async def test_with_version_1_a_refused_token_is_replaced_once_or_told(
    sqld_servers: SqldServers,
) -> None:
    key = SigningKey()
    server = sqld_servers.start(key=key)
    wrong = SigningKey().token()
    async with Loopback(of_version_1(server.url)) as proxy:
        given = iter([wrong, key.token()])
        options: dict[str, Any] = {"auth_token": lambda: next(given)}
        async with open_agent_state(proxy.url, **options) as state:
            assert await add_one(state) == ["m1", "m2"]
        asked = iter([wrong, SigningKey().token(), key.token()])
        for token in (wrong, None, lambda: next(asked)):
            with pytest.raises(ConfigError) as caught:
                async with open_agent_state(proxy.url, auth_token=token):
                    pass
            assert caught.value.code == "unauthorized"
            assert wrong not in str(caught.value)
    assert len(list(asked)) == 1
    server.kill()


@pytest.mark.service
@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_a_client_that_is_given_serves_and_is_left_open(
    sqld: SqldServer, scheme: str
) -> None:
    client = libsql_client.create_client(sqld.url.replace("http", scheme))
    for _ in range(2):
        state = create_libsql_agent_state(
            client=client, transcripts={"retention": "forever"}, table_prefix=PREFIX
        )
        async with state:
            assert await add_one(state) == ["m1", "m2"]
            assert state.features == {"durable", "search", "shared", "server_time"}

    assert not client.closed
    await client.close()


@pytest.mark.service
async def test_a_client_that_its_owner_closed_is_unavailable(sqld: SqldServer) -> None:
    client = libsql_client.create_client(sqld.url.replace("http", "ws"))
    options: dict[str, Any] = {"table_prefix": PREFIX, "busy_timeout_ms": 1}
    async with create_libsql_agent_state(client=client, **options) as state:
        await client.close()
        with pytest.raises(StateUnavailableError):
            await stored_ids(state, KEY)


@pytest.mark.service
def test_a_client_serves_other_loops_as_long_as_its_own_one_runs(sqld: SqldServer) -> None:
    async def use_elsewhere(state: AgentState) -> list[str]:
        return await asyncio.to_thread(asyncio.run, add_one(state))

    async def use() -> AgentState:
        client = libsql_client.create_client(sqld.url.replace("http", "ws"))
        state = create_libsql_agent_state(client=client, table_prefix=PREFIX)
        await state.__aenter__()
        assert await use_elsewhere(state) == ["m1", "m2"]
        await client.close()
        return state

    state = asyncio.run(use())
    with pytest.raises(StateError, match="event loop that has ended"):
        asyncio.run(add_one(state))


@pytest.mark.service
@pytest.mark.parametrize("spell", [str, lambda url: url.replace("http", "ws")])
async def test_a_server_that_was_killed_is_found_again(
    own_sqld: SqldServer, spell: Callable[[str], str]
) -> None:
    async with (
        Loopback(of_version_1(own_sqld.url)) as proxy,
        open_agent_state(
            spell(proxy.url if spell is str else own_sqld.url), busy_timeout_ms=20_000
        ) as state,
    ):
        for number in range(3):
            await append(state, KEY, f"m{number}")
            await asyncio.to_thread(own_sqld.restart)
        assert await stored_ids(state, KEY) == ["m0", "m1", "m2"]
