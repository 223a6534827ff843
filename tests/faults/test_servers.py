"""Servers that are full or refuse who asks, and rows that nobody can read."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.faults.disks import Disk, small_disk
from tests.faults.homes import (
    KINDS,
    Home,
    new_home,
    new_libsql_home,
    new_postgres_home,
    open_home,
)
from tests.providers.libsql_helpers import Loopback, Received, forward_to
from tests.providers.postgres_server import GUARDED, PASSWORD, PostgresServer
from tests.providers.sqld_server import SqldServer, SqldServers
from vitehub_chat.errors import ConfigError, StateError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import SessionRequest, WindowRequest
from vitehub_chat.testing.checks.material import append, ids_of, numbered, row, stored, stored_ids

KEY = ConversationKey(None, "helper", "portal", "t1")
SESSION = SessionRequest(conversation=KEY)


class Gate:
    """What stands before a libSQL server and refuses requests while it is told to."""

    def __init__(self, url: str) -> None:
        self._pass_on = forward_to(url)
        self.refusals: list[web.Response] = []
        self.accepts_only: str | None = None

    async def __call__(self, received: Received) -> web.StreamResponse | None:
        token = received.headers.get("authorization", "").removeprefix("Bearer ")
        if self.accepts_only not in {None, token}:
            return web.Response(status=401, text="The JWT is expired")
        if self.refusals and received.writes:
            return self.refusals.pop()
        return await self._pass_on(received)


@pytest.mark.service
async def test_an_expired_token_is_renewed_once_or_told_and_the_state_goes_on(
    sqld: SqldServer,
) -> None:
    gate, given = Gate(sqld.url), ["first"]
    async with Loopback(gate) as server:
        home = new_libsql_home(sqld, server.url)
        async with open_home(home, auth_token=lambda: given[-1]) as state:
            await append(state, KEY, "a")
            given.append("second")
            gate.accepts_only = "second"
            await append(state, KEY, "b")
            gate.accepts_only = "third"
            before = len(server.received)
            with pytest.raises(ConfigError) as raised:
                await append(state, KEY, "c", "d")
            assert (raised.value.code, raised.value.path) == ("unauthorized", "state.auth_token")
            assert "second" not in f"{raised.value} {raised.value.__cause__}"
            assert len(server.received) - before <= 2
            given.append("third")
            assert await stored_ids(state, KEY) == ["a", "b"]
            await append(state, KEY, "c", "d")
            assert await stored_ids(state, KEY) == ["a", "b", "c", "d"]


@pytest.mark.service
@pytest.mark.parametrize("status", [400, 404, 410])
async def test_an_expired_stream_is_opened_again_and_nothing_is_doubled(
    sqld: SqldServer, status: int
) -> None:
    gate = Gate(sqld.url)
    async with Loopback(gate) as server, open_home(new_libsql_home(sqld, server.url)) as state:
        await append(state, KEY, "a")
        text = '{"error":"The stream has expired due to inactivity","code":"STREAM_EXPIRED"}'
        gate.refusals = [web.Response(status=status, text=text)]
        await append(state, KEY, "b", "c")
        assert gate.refusals == []
        assert await stored_ids(state, KEY) == ["a", "b", "c"]


@pytest.fixture
def guarded(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """Give a server with a user whose password is the usual one again in the end."""
    yield postgres
    set_password(postgres, PASSWORD)


def set_password(server: PostgresServer, password: str) -> None:
    """Change the password of the user who needs one, and end what is connected."""
    server.execute(f"ALTER ROLE {GUARDED} PASSWORD '{password}'")
    server.execute(
        f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '{GUARDED}'"  # noqa: S608  a constant
    )


@pytest.mark.service
async def test_a_password_that_was_changed_is_asked_for_again_and_the_state_goes_on(
    guarded: PostgresServer,
) -> None:
    given = [PASSWORD]
    home = new_postgres_home(guarded, guarded.guarded_url(None))
    async with open_home(home, auth_token=lambda: given[-1], busy_timeout_ms=500) as state:
        await append(state, KEY, "a")
        set_password(guarded, "s3cond")
        with pytest.raises(ConfigError) as raised:
            await append(state, KEY, "b", "c")
        assert raised.value.code == "unauthorized"
        assert PASSWORD not in f"{raised.value} {raised.value.__cause__}"
        given.append("s3cond")
        assert await stored_ids(state, KEY) == ["a"]
        await append(state, KEY, "b", "c")
        assert await stored_ids(state, KEY) == ["a", "b", "c"]


async def fill(state: AgentState, disk: Disk, codes: set[str]) -> None:
    """Fill a disk, which has one of these codes, look at it, and go on with more space."""
    whole = 0

    async def append_large() -> None:
        nonlocal whole
        while True:
            large = [row(f"{name}{whole}", incompressible(20_000)) for name in "ab"]
            await state.transcripts.append(SESSION, rows=large)
            whole += 1

    for _ in range(2):
        with pytest.raises(StateError) as raised:
            await append_large()
        assert type(raised.value) is StateError
        assert raised.value.code in codes
    found = ids_of(await stored(state, KEY))
    assert found == [f"{name}{number}" for number in range(whole) for name in "ab"]
    disk.resize(256_000_000)
    await append_more(state, f"a{whole}", f"b{whole}", "last")
    assert await stored_ids(state, KEY) == [*found, f"a{whole}", f"b{whole}", "last"]


async def append_more(state: AgentState, *message_ids: str) -> None:
    rows = [row(each, incompressible(20_000)) for each in message_ids]
    await state.transcripts.append(SESSION, rows=rows)


def incompressible(size: int) -> str:
    """Return a text that a database cannot make shorter."""
    return hashlib.shake_128(b"text").hexdigest(size // 2)


@pytest.mark.service
async def test_a_libsql_server_with_a_full_disk_takes_nothing_by_halves(
    sqld_servers: SqldServers,
) -> None:
    with small_disk(4_000_000) as disk:
        server = SqldServer(sqld_servers._program, disk.folder / "server")
        server.start()
        try:
            async with open_home(new_libsql_home(server)) as state:
                # The server tells of a full disk as of any that fails, depending on what it writes.
                await fill(state, disk, {"no_space", "state_error"})
        finally:
            server.kill()


@pytest.mark.service
async def test_a_postgres_server_with_a_full_disk_takes_nothing_by_halves(
    postgres: PostgresServer,
) -> None:
    with small_disk(2_000_000) as disk:
        place = disk.folder / "tables"
        place.mkdir()
        if postgres._user is not None:
            shutil.chown(place, postgres._user)
        postgres.execute(f"CREATE TABLESPACE tiny LOCATION '{place}'")
        url = f"{postgres.url}?options=-c%20default_tablespace%3Dtiny"
        home = new_postgres_home(postgres, url)
        try:
            async with open_home(home) as state:
                await fill(state, disk, {"no_space"})
                await state.drop()
        finally:
            postgres.execute("DROP TABLESPACE tiny")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_row_that_cannot_be_read_is_told_kept_and_read_again_when_it_is_whole(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    home = new_home(kind, request, tmp_path)
    async with open_home(home) as state:
        await state.transcripts.append(SESSION, rows=numbered(3))
    async with open_home(home) as state:
        [(body,)] = home.ask("SELECT body FROM $rows WHERE message_id = 'm2'")
        set_body(home, '\'{"v":1,"parts":\'')
        with pytest.raises(StateError) as raised:
            await state.transcripts.get(KEY, message_ids=["m2"])
        assert (type(raised.value), raised.value.code) == (StateError, "corrupt")
        window = await state.transcripts.window(KEY, session=None, window=WindowRequest(limit=3))
        assert ids_of(window.shown) == ["m1", "m3"]
        assert await stored_ids(state, KEY) == ["m1", "m3"]
        await append(state, KEY, "m4")
        set_body(home, f"'{body}'")
        assert await stored_ids(state, KEY) == ["m1", "m2", "m3", "m4"]
    async with open_home(home) as state:
        found: Any = await state.transcripts.get(KEY, message_ids=["m2"])
        assert ids_of(found) == ["m2"]


def set_body(home: Home, text: str) -> None:
    """Change what is stored of a message behind the back of the provider."""
    home.ask(f"UPDATE $rows SET body = {text} WHERE message_id = 'm2'")  # noqa: S608
