"""What is over leaves a store by requests, and nothing that was ever given out comes again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.providers.sql_seam import SeamDriver, seam_state
from vitehub_chat.errors import StateConflictError
from vitehub_chat.model.clock import SystemClock
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.sql import Capabilities, SqlAgentState
from vitehub_chat.testing.checks.lines import new_line, under
from vitehub_chat.testing.checks.material import append, ids_of, new_key, numbers_of, row, stored
from vitehub_chat.testing.clock import FakeClock

TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'vitehub%'"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def driver(tmp_path: Path) -> SeamDriver:
    return SeamDriver(f"{tmp_path}/state.db")


@pytest.fixture
async def state(driver: SeamDriver, clock: FakeClock) -> AsyncIterator[SqlAgentState]:
    async with seam_state(driver, clock) as opened:
        yield opened


async def count(driver: SeamDriver, table: str, where: str = "1") -> object:
    sql = f"SELECT count(*) FROM vitehub_agent_state_{table} WHERE {where}"  # noqa: S608
    return (await driver.execute(sql, {}))[0][0]


async def test_ended_entries_idle_scopes_and_notes_leave_the_store(
    state: SqlAgentState, driver: SeamDriver, clock: FakeClock
) -> None:
    for _ in range(3):
        line = new_line(state)
        await line.run(await line.start("a"))
    assert await count(driver, "entries") == 3
    assert await count(driver, "scopes", "idle_at IS NOT NULL") == 3
    assert await count(driver, "writes") == 9
    clock.advance(hours=2)
    key = new_key()
    await append(state, key, "m1")
    assert await count(driver, "entries") == 0
    assert await count(driver, "scopes", "scope LIKE 'lock:%'") == 0
    assert await count(driver, "writes") == 1


async def test_more_than_a_slice_leaves_with_the_next_calls(
    state: SqlAgentState, driver: SeamDriver, clock: FakeClock
) -> None:
    for _ in range(205):
        line = new_line(state)
        await line.run(await line.start("a"))
    clock.advance(hours=2)
    left = []
    for _ in range(3):
        await append(state, new_key(), "m1")
        left.append(await count(driver, "entries"))
    assert left == [5, 0, 0]


async def test_a_failing_cleanup_harms_no_call(
    state: SqlAgentState, driver: SeamDriver, clock: FakeClock
) -> None:
    line = new_line(state)
    await line.run(await line.start("a"))
    clock.advance(hours=2)
    driver.fault = lambda statements: "away" if "DELETE" in statements[0][0] else None
    key = new_key()
    await append(state, key, "m1")
    assert ids_of(await stored(state, key)) == ["m1"]


async def test_the_token_of_a_lock_rises_also_after_its_scope_was_removed(
    state: SqlAgentState, driver: SeamDriver, clock: FakeClock
) -> None:
    line, other = new_line(state), new_line(state)
    tokens = []
    for number in range(4):
        grant = await line.start(f"a{number}")
        tokens.append(grant.token)
        await line.run(grant)
        clock.advance(hours=2)
        await other.run(await other.start(f"b{number}"))
        assert await count(driver, "scopes", "scope LIKE 'lock:%'") == 1
    assert tokens == sorted(set(tokens))


async def test_a_write_that_relies_on_a_removed_scope_is_refused(
    state: SqlAgentState, driver: SeamDriver, clock: FakeClock
) -> None:
    line = new_line(state)
    for number in range(5):
        await line.run(await line.start(f"a{number}"))
    clock.advance(hours=2)
    async with seam_state(driver, clock) as other:
        await append(other, new_key(), "m1")
        assert await count(driver, "scopes", "scope LIKE 'lock:%'") == 0
        there = line.seen_by(other)
        first = await there.start("b")
        await there.admit_all("c")
        answer = await line.admit("d")
        assert (answer.verdict, answer.grant) == ("accepted", None)
        assert await there.drain(first) == [["b"], ["c"], ["d"]]


async def test_what_was_rescued_forever_is_shown_to_those_who_knew_it_before(
    driver: SeamDriver, clock: FakeClock
) -> None:
    key = new_key()
    hour = {"transcripts": {"retention": "1h"}}
    forever = {"transcripts": {"retention": "forever"}}
    async with seam_state(driver, clock, **hour) as state:
        await append(state, key, "m1")
        async with seam_state(SeamDriver(driver._path), clock, **forever) as keeper:
            clock.advance(hours=2)
            rows = await append(state, key, "m1")
            assert numbers_of(rows) == [1]
            assert ids_of(await stored(keeper, key)) == ["m1"]


async def test_a_dead_answer_is_not_taken_for_one_of_a_later_turn(
    state: SqlAgentState, clock: FakeClock
) -> None:
    line = new_line(state)
    grant = await line.start("a")
    await line.record(grant)
    pending = row("re a", role="assistant", status="pending")
    await state.turns.progress(grant.ticket_id, answer=pending, ctx=under(grant))
    clock.advance(hours=3)
    await line.start("b")
    statuses = [each.status for each in await stored(state, line.key)]
    assert statuses == ["complete", "interrupted"]


async def test_a_file_of_the_file_provider_goes_on_by_requests(
    driver: SeamDriver, clock: FakeClock
) -> None:
    async with open_sqlite(f"file:{driver._path}", clock=clock) as file:
        line = new_line(file)
        first = await line.start("a")
        await line.run(first)
        before = await append(file, line.key, "m1", "m2")
    async with seam_state(driver, clock) as state:
        assert (await stored(state, line.key))[2:] == list(before)
        later = line.seen_by(state)
        grant = await later.start("b")
        assert grant.token > first.token
        await later.run(grant)
        assert numbers_of(await append(state, new_key(), "m1")) == [1]
        assert numbers_of(await stored(state, line.key)) == [1, 2, 3, 4, 5, 6]


async def test_tables_of_a_prefix_are_of_that_prefix_alone(
    driver: SeamDriver, clock: FakeClock
) -> None:
    async with seam_state(driver, clock, table_prefix="other_") as state:
        await append(state, new_key(), "m1")
        assert await driver.execute(TABLES, {}) == []


async def test_leases_follow_the_clock_of_the_server(tmp_path: Path) -> None:
    driver = SeamDriver(f"{tmp_path}/state.db")
    driver.capabilities = Capabilities(has_server_clock=True)
    async with SqlAgentState(driver) as state:
        assert "server_time" in state.features
        distance = state.clock.now() - SystemClock().now()
        assert abs(distance) < timedelta(seconds=2)
    async with SqlAgentState(driver, clock=FakeClock()) as state:
        assert "server_time" not in state.features
        assert state.clock.now() == FakeClock().now()


async def test_a_server_whose_clock_differs_is_followed(tmp_path: Path) -> None:
    driver = SeamDriver(f"{tmp_path}/state.db")
    driver.capabilities = Capabilities(has_server_clock=True)
    execute = driver.execute

    async def an_hour_ahead(sql: str, named: dict[str, object]) -> object:
        return [(int(str((await execute(sql, named))[0][0])) + 3_600_000_000,)]  # type: ignore[arg-type]

    driver.execute = an_hour_ahead  # type: ignore[method-assign,assignment]
    async with SqlAgentState(driver) as state:
        distance = state.clock.now() - SystemClock().now()
        assert timedelta(minutes=59) < distance < timedelta(minutes=61)


async def test_a_stale_fence_is_refused_from_what_is_kept(
    state: SqlAgentState, driver: SeamDriver, clock: FakeClock
) -> None:
    line = new_line(state)
    grant = await line.start("a")
    await line.record(grant)
    async with seam_state(driver, clock) as other:
        clock.advance(minutes=1)
        following = line.seen_by(other)
        await following.start("b")
        with pytest.raises(StateConflictError) as caught:
            await line.finish(grant)
    assert caught.value.code == "lock_lost"
