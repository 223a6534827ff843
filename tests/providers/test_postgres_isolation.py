"""Writes beside each other: every one happens as if it were alone, or is refused and runs again."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.providers.postgres_server import (
    CountingDriver,
    Place,
    PostgresServer,
    conversations,
    holding,
    until,
    writing,
)
from tests.providers.sqlite_helpers import append, stored
from vitehub_chat.errors import ChatBusyError, StateConflictError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.state.sql.agent_state import SqlAgentState
from vitehub_chat.state.sql.driver import Statement
from vitehub_chat.state.tables import Transaction
from vitehub_chat.testing.checks import material
from vitehub_chat.testing.checks.lines import new_line
from vitehub_chat.testing.clock import FakeClock

pytestmark = pytest.mark.service

HOLDS = "CALL"
BLOCKED = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"


Drivers = tuple[CountingDriver, CountingDriver]
Pair = tuple[SqlAgentState, SqlAgentState]


@pytest.fixture
def drivers(postgres: PostgresServer) -> Drivers:
    return CountingDriver(postgres), CountingDriver(postgres)


@pytest.fixture
async def pair(place: Place, drivers: Drivers) -> AsyncIterator[Pair]:
    """Give two objects of one store, like those of two processes."""
    clock = FakeClock()
    one, two = (place.open_over(driver, clock) for driver in drivers)
    async with one, two:
        yield one, two


async def overlap(place: Place, tables: str, *calls: Awaitable[Any]) -> list[Any]:
    """Make calls whose writes are all stopped before they write to tables, then let them go on."""
    with holding(place, f"LOCK TABLE {tables} IN SHARE MODE"):
        tasks = [asyncio.ensure_future(call) for call in calls]
        await until(place, BLOCKED, len(tasks))
    return await asyncio.gather(*tasks, return_exceptions=True)


def sent(drivers: Drivers) -> int:
    """Return how many guarded writes were sent."""
    return sum(words[0] == HOLDS for driver in drivers for words in driver.requests)


def taking(mine: str, yours: str) -> Callable[[Transaction], bool]:
    """Return a step that makes a conversation if another one is not there."""

    def step(tx: Transaction) -> bool:
        is_first = tx.conversations.get(yours) is None
        if is_first:
            tx.conversations.ensure(mine)
        return is_first

    return step


def numbering(mine: str, yours: str) -> Callable[[Transaction], bool]:
    """Return a step that takes a number in a conversation if none is taken in another one."""

    def step(tx: Transaction) -> bool:
        other, own = tx.conversations.get(yours), tx.conversations.get(mine)
        assert other is not None
        assert own is not None
        if other.last_seq == 0:
            tx.conversations.allocate(own.key, 1)
        return other.last_seq == 0

    return step


async def test_of_two_that_rely_on_one_revision_the_second_runs_again(
    pair: Pair, drivers: Drivers, place: Place
) -> None:
    for state in pair:
        await append(state, "m0")
    before = sent(drivers)
    answers = await overlap(place, "$rows", append(pair[0], "m1"), append(pair[1], "m2"))
    assert (sorted(answers), sent(drivers) - before) == ([[2], [3]], 3)
    assert [seq for seq, _ in await stored(pair[0])] == [1, 2, 3]
    assert place.query("SELECT last_seq FROM $conversations") == [(3,)]


async def test_two_that_make_the_same_make_it_once(
    pair: Pair, drivers: Drivers, place: Place
) -> None:
    answers = await overlap(place, "$rows", append(pair[0], "m1"), append(pair[1], "m2"))
    assert (sorted(answers), sent(drivers)) == ([[1], [2]], 3)
    assert len(conversations(place)) == 1


async def test_two_that_depend_on_each_other_do_not_both_see_the_past(
    pair: Pair, place: Place
) -> None:
    calls = (pair[0].run_write(taking("a", "b")), pair[1].run_write(taking("b", "a")))
    answers = await overlap(place, "$conversations", *calls)
    assert sorted(answers) == [False, True]
    assert len(conversations(place)) == 1


async def test_what_is_only_read_does_not_change_before_the_write_has_happened(
    pair: Pair, place: Place
) -> None:
    for name in "ab":
        await pair[0].run_write(writing(name))
    calls = (pair[0].run_write(numbering("a", "b")), pair[1].run_write(numbering("b", "a")))
    answers = await overlap(place, "$conversations", *calls)
    assert sorted(answers) == [False, True]
    assert place.query("SELECT sum(last_seq) FROM $conversations") == [(1,)]


async def test_a_session_of_one_name_is_made_once_in_a_channel(pair: Pair, place: Place) -> None:
    one = material.new_key("t1")
    two = ConversationKey(one.tenant, one.agent, one.channel, "t2")
    for state, key in zip(pair, (one, two), strict=True):
        await material.append(state, key, "m0")
    named: dict[str, Any] = {"policy": SessionPolicy(), "base": "s1"}
    calls = (
        material.append(pair[0], one, "m1", **named),
        material.append(pair[1], two, "m2", **named),
    )
    answers = await overlap(place, "$sessions", *calls)
    assert len({row.session_id for rows in answers for row in rows}) == 1
    assert place.query("SELECT count(*) FROM $sessions WHERE base = 's1'") == [(1,)]


async def test_a_claim_is_given_once_to_messages_that_want_different_locks(
    pair: Pair, place: Place
) -> None:
    line = new_line(pair[0])
    calls = (
        line.admit("a", claim_id="c"),
        line.seen_by(pair[1]).admit("b", claim_id="c", lock_key="another lock"),
    )
    answers = await overlap(place, "$entries", *calls)
    assert sorted(each.verdict for each in answers) == ["accepted", "repeat"]
    assert len({each.ticket_id for each in answers}) == 1
    assert place.query("SELECT count(*) FROM $entries") == [(1,)]


async def test_nothing_is_cleared_beside_a_message_that_is_admitted(
    pair: Pair, place: Place
) -> None:
    line = new_line(pair[0])
    await material.append(pair[0], line.key, "m1")
    answers = await overlap(
        place,
        "$entries, $rows",
        line.admit("a", lock_key="another lock"),
        pair[1].sessions.clear(line.key, session_id=None),
    )
    assert answers[0].verdict == "accepted"
    assert place.query("SELECT count(*) FROM $entries") == [(1,)]
    is_cleared = place.query("SELECT count(*) FROM $rows") == [(0,)]
    assert isinstance(answers[1], ChatBusyError) is not is_cleared


async def test_four_states_that_append_to_the_same_conversations_lose_nothing(
    place: Place,
) -> None:
    async with place.open():
        states = [place.open() for _ in range(4)]
        for state in states:
            await state.__aenter__()
        keys = [material.new_key(f"t{n}") for n in range(3)]
        calls = [
            material.append(state, key, f"{number}-{round_}")
            for round_ in range(8)
            for number, state in enumerate(states)
            for key in keys
        ]
        await asyncio.gather(*calls)
        for key in keys:
            rows = await material.stored(states[0], key)
            assert [row.seq for row in rows] == list(range(1, 33))
            assert len({row.message.id for row in rows}) == 32
        for state in states:
            await state.aclose()


async def test_upkeep_leaves_scopes_alone_that_a_write_holds(place: Place) -> None:
    clock = FakeClock()
    async with place.open(clock=clock) as state:
        for _ in range(3):
            line = new_line(state)
            await line.run(await line.start("a"))
        floor = "SELECT value FROM $counters WHERE name = 'floor'"
        idle = set(place.query("SELECT scope_hash FROM $scopes WHERE idle_at IS NOT NULL"))
        highest = place.query("SELECT max(revision) FROM $scopes WHERE idle_at IS NOT NULL")[0][0]
        clock.advance(hours=2)
        one = "SELECT 1 FROM $scopes WHERE idle_at IS NOT NULL ORDER BY idle_at LIMIT 1 FOR UPDATE"
        with holding(place, one):
            await append(state, "m1")
        left = idle & set(place.query("SELECT scope_hash FROM $scopes"))
        assert (len(idle), len(left)) == (6, 1)
        assert place.query(floor) == [(highest + 1,)]


async def test_a_scope_that_is_removed_while_a_write_waits_for_it_is_made_anew(
    place: Place, drivers: Drivers
) -> None:
    clock = FakeClock()
    async with place.open_over(drivers[0], clock) as state:
        line = new_line(state)
        tokens = []
        for name in ("a", "b"):
            grant = await line.start(name)
            tokens.append(grant.token)
            await line.run(grant)
        with place.connected() as other:
            idle = f"DELETE FROM {place.prefix}scopes WHERE idle_at IS NOT NULL RETURNING revision"  # noqa: S608
            highest = max(revision for (revision,) in other.execute(idle.encode()))
            raised = f"UPDATE {place.prefix}counters SET value = {highest} + 1"  # noqa: S608
            other.execute(raised.encode())
            admitting = asyncio.ensure_future(line.start("c"))
            await until(place, BLOCKED, 1)
            other.commit()
            tokens.append((await admitting).token)
    assert tokens == sorted(set(tokens))


def scopes_in_order(count: int) -> list[str]:
    """Return scopes in the order in which they are locked."""
    return sorted(
        (f"lock:{number}" for number in range(count)),
        key=lambda scope: hashlib.sha256(scope.encode()).digest(),
    )


def hold(place: Place, *scopes: str, **fields: object) -> Statement:
    """Return the statement that locks scopes, as a batch begins with."""
    wanted = [{"scope": scope, "is_shared": False, **fields} for scope in scopes]
    call = f"CALL {place.prefix}hold(:scopes, :at, :nonce)"
    return call, {"scopes": json.dumps(wanted), "at": 1, "nonce": json.dumps(wanted)}


async def test_a_deadlock_with_somebody_else_is_repeated(
    place: Place, postgres: PostgresServer
) -> None:
    first, second = scopes_in_order(2)
    url = f"{postgres.url}?options=-c%20deadlock_timeout%3D50ms"
    async with place.open(url=url) as state:
        driver = state._driver
        await driver.batch([hold(place, first, second)])
        lock = "SELECT 1 FROM $scopes WHERE scope_hash = sha256('{}') FOR UPDATE"
        lock = lock.replace("$", place.prefix)
        with place.connected() as other:
            other.execute(b"SET deadlock_timeout = '60s'")
            other.execute(lock.format(second).encode())
            call = asyncio.ensure_future(driver.batch([hold(place, second, first, revision=0)]))
            await until(place, BLOCKED, 1)
            await asyncio.to_thread(other.execute, lock.format(first).encode())
            assert not call.done()
        await call
    assert place.query("SELECT count(*) FROM $writes") == [(2,)]


async def test_a_shared_scope_keeps_nobody_waiting_but_who_raises_it(place: Place) -> None:
    async with place.open() as state:
        driver = state._driver
        await driver.batch([hold(place, "values:a", revision=0, next=5)])
        shared = "SELECT 1 FROM $scopes WHERE scope_hash = sha256('values:a') FOR SHARE"
        with holding(place, shared):
            await driver.batch([hold(place, "values:a", revision=5, is_shared=True)])
            raising = asyncio.ensure_future(
                driver.batch([hold(place, "values:a", revision=5, next=6)])
            )
            await until(place, BLOCKED, 1)
        await raising
        with pytest.raises(StateConflictError):
            await driver.batch([hold(place, "values:a", revision=5, is_shared=True)])
    assert place.query("SELECT revision, idle_at FROM $scopes") == [(6, None)]


async def test_a_scope_that_is_not_there_has_the_floor(place: Place) -> None:
    async with place.open() as state:
        place.query("UPDATE $counters SET value = 7")
        for revision in (0, 6, 8):
            with pytest.raises(StateConflictError):
                await state._driver.batch([hold(place, "lock:a", revision=revision, next=9)])
        assert place.query("SELECT count(*) FROM $scopes") == [(0,)]
        await state._driver.batch([hold(place, "lock:a", revision=7, next=8)])
    assert place.query("SELECT revision FROM $scopes") == [(8,)]


async def test_who_waits_for_a_writer_reads_what_it_has_written(pair: Pair, place: Place) -> None:
    for state in pair:
        await append(state, "m0")
    with holding(place, "LOCK TABLE $rows IN EXCLUSIVE MODE"):
        first = asyncio.ensure_future(append(pair[0], "m1"))
        await until(place, BLOCKED, 1)
        second = asyncio.ensure_future(append(pair[1], "m1"))
        await until(place, BLOCKED, 2)
    assert [await first, await second] == [[2], [2]]
    await pair[0].run_write(writing("other"))
