"""The way to a server that is lost in the middle of things: typed errors, and it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import attrs
import pytest

from tests.faults.homes import Home, new_libsql_home, new_postgres_home, open_home
from tests.faults.network import Network
from tests.providers.postgres_server import PostgresServer
from tests.providers.sqld_server import SqldServer
from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState, StateContext
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.material import append, rows, stored_ids

pytestmark = pytest.mark.service

KEY = ConversationKey(None, "helper", "portal", "t1")
SESSION = SessionRequest(conversation=KEY)


@attrs.frozen
class Remote:
    """A store behind a network, and its server."""

    home: Home
    network: Network
    server: Any

    def open(self, **options: Any) -> AgentState:
        return open_home(self.home, **options)


@pytest.fixture(params=["libsql", "postgres"])
def remote(request: pytest.FixtureRequest) -> Iterator[Remote]:
    """Give a store of a test's own, whose server it may restart."""
    if request.param == "libsql":
        sqld: SqldServer = request.getfixturevalue("own_sqld")
        with Network(sqld.port) as network:
            url = f"http://127.0.0.1:{network.port}"
            yield Remote(new_libsql_home(sqld, url), network, sqld)
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        with Network(port) as network:
            url = server.url.replace(f":{port}/", f":{network.port}/")
            yield Remote(new_postgres_home(server, url), network, server)


async def attempt(state: AgentState, *message_ids: str) -> StateUnavailableError | None:
    """Append once; return the error if the server did not answer."""
    try:
        await append(state, KEY, *message_ids)
    except StateUnavailableError as error:
        return error
    return None


async def test_a_refused_connection_writes_nothing_and_may_be_tried_again(remote: Remote) -> None:
    async with remote.open(busy_timeout_ms=100) as state:
        await append(state, KEY, "a")
        remote.network.cut()
        failures = [await attempt(state, "b", "c")]
        with pytest.raises(StateUnavailableError) as reading:
            await stored_ids(state, KEY)
        failures.append(reading.value)
        remote.network.mend()
        assert [each and (each.outcome, each.retryable, each.code) for each in failures] == [
            ("not_written", True, "state_unavailable")
        ] * 2
        assert await stored_ids(state, KEY) == ["a"]
        await append(state, KEY, "b", "c")
        assert await stored_ids(state, KEY) == ["a", "b", "c"]


async def test_a_lost_answer_doubles_nothing(remote: Remote) -> None:
    async with remote.open() as state:
        await append(state, KEY, "a")
        remote.network.lose_answer_to(b"lost-1")
        failure = await attempt(state, "lost-1", "lost-2")
        assert failure is None or (failure.outcome, failure.retryable) == ("unknown", True)
        assert await stored_ids(state, KEY) in (["a"], ["a", "lost-1", "lost-2"])
        await append(state, KEY, "lost-1", "lost-2")
        await append(state, KEY, "b")
        assert await stored_ids(state, KEY) == ["a", "lost-1", "lost-2", "b"]


async def test_a_server_restarted_in_the_middle_of_a_write_halves_and_doubles_nothing(
    remote: Remote,
) -> None:
    async with remote.open() as state:
        await append(state, KEY, "a")
        remote.network.hold_answer_to(b"during-1")
        writing = asyncio.create_task(attempt(state, "during-1", "during-2"))
        await asyncio.to_thread(remote.network.wait_until_held)
        await asyncio.to_thread(remote.server.restart)
        remote.network.go_on()
        failure = await writing
        assert failure is None or failure.retryable
        assert await stored_ids(state, KEY) in (["a"], ["a", "during-1", "during-2"])
        await append(state, KEY, "during-1", "during-2")
        assert await stored_ids(state, KEY) == ["a", "during-1", "during-2"]


async def test_a_pause_longer_than_the_deadline_ends_at_the_deadline(remote: Remote) -> None:
    async with remote.open() as state:
        await append(state, KEY, "a")
        remote.network.stop()
        soon = StateContext(deadline=state.clock.now() + timedelta(seconds=0.3))
        with pytest.raises(StateUnavailableError) as writing:
            await state.transcripts.append(SESSION, rows=rows("b", "c"), ctx=soon)
        with pytest.raises(StateUnavailableError) as reading:
            await state.transcripts.get(KEY, message_ids=["a"], ctx=soon)
        remote.network.go_on()
        assert (writing.value.outcome, writing.value.retryable) == ("unknown", True)
        assert (reading.value.outcome, reading.value.retryable) == ("not_written", True)
        await append(state, KEY, "b", "c")
        assert await stored_ids(state, KEY) == ["a", "b", "c"]


async def test_a_connection_cut_at_any_request_of_opening_lets_it_open_again(
    remote: Remote,
) -> None:
    state = remote.open()
    remote.network.lose_answer_to(b"CREATE TABLE")
    with suppress(StateUnavailableError):
        await state.__aenter__()
    await state.__aenter__()
    await append(state, KEY, "a")
    assert await stored_ids(state, KEY) == ["a"]
    await state.aclose()
