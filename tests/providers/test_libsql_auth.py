"""Tokens on a real libSQL server that wants them: accepted, refused, expired, and never shown."""

from __future__ import annotations

import asyncio
import traceback
from datetime import UTC, datetime, timedelta

import pytest

from tests.providers.libsql_helpers import Loopback, driving, forward_to, in_turn, say, say_rows
from tests.providers.sqld_server import SigningKey, SqldServer, SqldServers
from vitehub_chat.errors import ConfigError, StateError
from vitehub_chat.state.providers.libsql import open_libsql

pytestmark = pytest.mark.service

SELECT = "SELECT 'yes'"
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def key() -> SigningKey:
    return SigningKey()


@pytest.fixture(scope="module")
def guarded(sqld_servers: SqldServers, key: SigningKey) -> SqldServer:
    """Give a server that wants tokens of a key."""
    return sqld_servers.start(key=key)


def expiring(key: SigningKey, in_: timedelta) -> str:
    return key.token(exp=int((datetime.now(UTC) + in_).timestamp()))  # noqa: TID251  of the server


async def test_a_valid_token_is_accepted(guarded: SqldServer, key: SigningKey) -> None:
    async with driving(guarded.url, token=expiring(key, HOUR)) as driver:
        assert await driver.execute(SELECT, {}) == [("yes",)]


async def test_a_token_may_stand_in_the_url(guarded: SqldServer, key: SigningKey) -> None:
    async with open_libsql(f"{guarded.url}?authToken={key.token()}") as state:
        assert state.features >= {"durable", "shared", "server_time"}


@pytest.mark.parametrize("kind", ["none", "expired", "of another key", "garbage"])
async def test_a_token_that_is_not_accepted_is_a_configuration_error(
    guarded: SqldServer, key: SigningKey, kind: str
) -> None:
    token = {
        "none": None,
        "expired": expiring(key, -HOUR),
        "of another key": SigningKey().token(),
        "garbage": "s3cret",
    }[kind]
    async with (
        Loopback(forward_to(guarded.url)) as proxy,
        driving(proxy.url, token=token) as driver,
    ):
        for sql in (SELECT, "CREATE TABLE things (id)"):
            with pytest.raises(ConfigError) as caught:
                await driver.execute(sql, {})

            assert (caught.value.code, caught.value.path) == ("unauthorized", "state.auth_token")
            assert token is None or token not in "".join(traceback.format_exception(caught.value))

        assert len(proxy.received) == 2


async def test_without_a_token_no_header_is_sent() -> None:
    async with Loopback(say_rows(["yes"])) as server, driving(server.url) as driver:
        await driver.execute(SELECT, {})

    assert "authorization" not in server.received[0].headers


async def test_an_expired_token_is_replaced_once(guarded: SqldServer, key: SigningKey) -> None:
    given = iter([expiring(key, -HOUR), expiring(key, HOUR)])
    async with driving(guarded.url, token=lambda: next(given)) as driver:
        assert await driver.execute(SELECT, {}) == [("yes",)]
        assert await driver.execute(SELECT, {}) == [("yes",)]
    assert list(given) == []


async def test_a_callable_that_only_gives_expired_tokens_is_asked_twice(
    guarded: SqldServer, key: SigningKey
) -> None:
    given = [expiring(key, -HOUR), expiring(key, -2 * HOUR), expiring(key, HOUR)]
    asked = iter(given)
    async with driving(guarded.url, token=lambda: next(asked)) as driver:
        with pytest.raises(ConfigError, match="token"):
            await driver.execute(SELECT, {})
    assert list(asked) == given[2:]


async def test_a_token_that_may_only_read_is_refused_for_writes(
    guarded: SqldServer, key: SigningKey
) -> None:
    async with driving(guarded.url, token=key.token(a="ro")) as driver:
        assert await driver.execute(SELECT, {}) == [("yes",)]
        with pytest.raises(StateError) as caught:
            await driver.execute("CREATE TABLE things (id)", {})

    assert caught.value.code == "read_only"


async def test_a_token_is_not_sent_to_where_a_server_refers_to() -> None:
    async with Loopback(say_rows(["no"])) as other:
        redirect = say(307, headers={"location": f"{other.url}/v3/pipeline"})
        async with (
            Loopback(redirect) as server,
            driving(server.url, token="s3cret") as driver,  # noqa: S106  made up
        ):
            with pytest.raises(ConfigError, match="another address"):
                await driver.execute(SELECT, {})

    assert other.received == []


async def test_a_refused_token_is_renewed_once_for_many_readers() -> None:
    asked = 0

    def give() -> str:
        nonlocal asked
        asked += 1
        return f"token-{asked}"

    async with (
        Loopback(in_turn(*[say(401)] * 8, say_rows(["yes"]))) as server,
        driving(server.url, token=give) as driver,
    ):
        await asyncio.gather(*(driver.execute(SELECT, {}) for _ in range(8)))

    assert asked == 2
    assert {each.headers["authorization"] for each in server.received} == {
        "Bearer token-1",
        "Bearer token-2",
    }
