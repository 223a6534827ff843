"""A state on a libSQL server that stands still or is away: typed errors, and then it goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.providers.libsql_helpers import make_driver
from tests.providers.sqld_server import SqldServer
from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import StateContext
from vitehub_chat.state.opening import open_agent_state
from vitehub_chat.state.providers.libsql.limits import Limits
from vitehub_chat.state.sql import SqlAgentState
from vitehub_chat.state.sql.retrying import Retrying
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.material import append, new_key, row, stored_ids

pytestmark = pytest.mark.service

KEY = new_key()


@pytest.fixture
async def impatient(own_sqld: SqldServer) -> AsyncIterator[SqlAgentState]:
    """Give a state that gives a request one second and repeats it once."""
    async with open_agent_state(own_sqld.url):
        pass  # the tables are made by one that has more time
    driver = make_driver(own_sqld.url, limits=Limits(request=1.0, retry=0.0))
    async with SqlAgentState(driver, retrying=Retrying(failures=2)) as state:
        await repeat_until_stored(state, KEY, "m1")
        yield state


async def repeat_until_stored(state: SqlAgentState, key: ConversationKey, message_id: str) -> None:
    """Append a message with the same id until there is an answer."""
    while True:
        try:
            await append(state, key, message_id)
        except StateUnavailableError:
            continue
        return


async def test_a_pause_longer_than_every_attempt_is_an_unknown_outcome(
    own_sqld: SqldServer, impatient: SqlAgentState
) -> None:
    with own_sqld.paused():
        with pytest.raises(StateUnavailableError) as writing:
            await append(impatient, KEY, "m2")
        with pytest.raises(StateUnavailableError) as reading:
            await stored_ids(impatient, KEY)
    await repeat_until_stored(impatient, KEY, "m2")

    assert (writing.value.outcome, reading.value.outcome) == ("unknown", "not_written")
    assert await stored_ids(impatient, KEY) == ["m1", "m2"]


async def test_a_server_that_is_away_for_every_attempt_wrote_nothing(
    own_sqld: SqldServer, impatient: SqlAgentState
) -> None:
    own_sqld.kill()
    with pytest.raises(StateUnavailableError) as caught:
        await append(impatient, KEY, "m2")
    own_sqld.start()
    await repeat_until_stored(impatient, KEY, "m3")

    assert caught.value.outcome == "not_written"
    assert await stored_ids(impatient, KEY) == ["m1", "m3"]


async def test_a_pause_longer_than_the_deadline_leaves_the_write_to_go_on(
    own_sqld: SqldServer,
) -> None:
    async with open_agent_state(own_sqld.url) as state:
        await append(state, KEY, "m1")
        with own_sqld.paused():
            ctx = StateContext(deadline=state.clock.now() + timedelta(seconds=0.2))
            request = SessionRequest(conversation=KEY)
            with pytest.raises(StateUnavailableError, match="before the deadline") as caught:
                await state.transcripts.append(request, rows=[row("m2")], ctx=ctx)
        await append(state, KEY, "m3")

        assert caught.value.outcome == "unknown"
        assert await stored_ids(state, KEY) == ["m1", "m2", "m3"]
