"""What is over leaves the database: when, how much at a time, and what `forever` keeps."""

from __future__ import annotations

import pytest

from tests.providers.postgres_server import Place
from tests.providers.sqlite_helpers import KEY, append, do_nothing, stored
from vitehub_chat.state.providers.postgres.connections import Connector
from vitehub_chat.state.providers.postgres.link import Link
from vitehub_chat.state.providers.postgres.state import PostgresAgentState
from vitehub_chat.state.providers.postgres.upkeep import SLICE, Upkeep
from vitehub_chat.state.records import EntryRecord
from vitehub_chat.state.tables import Transaction
from vitehub_chat.testing.clock import FakeClock

pytestmark = pytest.mark.service

HOUR = {"retention": "1h"}
FOREVER = {"retention": "forever"}
ROWS = "SELECT count(*) FROM $rows"
ENTRIES = "SELECT count(*) FROM $entries"


def ended_entry(ticket_id: str) -> EntryRecord:
    return EntryRecord(
        ticket_id=ticket_id,
        lock_key="lock",
        conversation=KEY.encode(),
        lane="lane",
        claim_id=None,
        claim_key=None,
        payload=None,
        starts_session=False,
        coalesces=False,
        state="ended",
        owner=None,
        attended_until=0,
        expires_at=None,
        claim_until=0,
        keep_until=0,
    )


async def rest(state: PostgresAgentState) -> None:
    """Let the workers do their upkeep: each does some after a write."""
    for _ in range(5):
        await state.run_write(do_nothing)


async def close(state: PostgresAgentState) -> None:
    """Close the state, which ends the upkeep that is under way."""
    await rest(state)
    await state.aclose()


async def test_an_expired_row_is_invisible_at_once_and_removed_later(place: Place) -> None:
    clock = FakeClock()
    state = place.open(clock=clock, transcripts=HOUR, cleanup_interval_ms=10_000_000)
    async with state:
        await append(state, "m1", "m2")
        clock.advance(hours=1, microseconds=-1)
        assert await stored(state) == [(1, "m1"), (2, "m2")]
        clock.advance(microseconds=1)
        assert await stored(state) == []
        await close(state)
    assert place.query(ROWS) == [(2,)]
    async with place.open(clock=clock) as state:
        await close(state)
    assert place.query(ROWS) == [(0,)]


async def fill(place: Place, clock: FakeClock, count: int) -> Upkeep:
    """Write rows and entries that are over after an hour."""

    def insert(tx: Transaction) -> None:
        for number in range(count):
            tx.entries.insert(ended_entry(f"t{number}"))

    async with place.open(clock=clock, transcripts=HOUR) as state:
        await close(state)
    async with place.open(clock=clock, transcripts=HOUR, cleanup_interval_ms=2**31 - 1) as state:
        await rest(state)
        await append(state, *(f"m{number}" for number in range(count)))
        await state.run_write(insert)
    clock.advance(hours=2)
    return Upkeep(clock, 1000)


def link_to(place: Place) -> Link:
    connector: Connector = place.open()._connector
    return Link(connector)


async def test_a_slice_is_bounded(place: Place) -> None:
    upkeep = await fill(place, FakeClock(), 2 * SLICE + 50)
    link = link_to(place)
    left = []
    while upkeep.run_slice(link):
        left += place.query(ROWS) + place.query(ENTRIES)
    link.close()
    assert left == [(SLICE + 50,), (SLICE + 50,), (50,), (50,)]
    assert place.query(ROWS) + place.query(ENTRIES) == [(0,), (0,)]


async def test_two_processes_remove_different_rows(place: Place) -> None:
    upkeep = await fill(place, FakeClock(), SLICE + 50)
    with place.connected() as other:
        prefix = place.prefix
        locking = f"SELECT 1 FROM {prefix}rows ORDER BY expires_at, id LIMIT 100 FOR UPDATE"  # noqa: S608
        other.execute(locking.encode())
        link = link_to(place)
        upkeep.run_slice(link)
        link.close()
    assert place.query(ROWS) == [(100,)]


async def test_a_server_that_is_away_is_cleaned_the_next_time(place: Place) -> None:
    clock = FakeClock()
    upkeep = await fill(place, clock, 1)
    link = link_to(place)
    place.server.stop()
    try:
        assert upkeep.run_slice(link) is False
    finally:
        place.server.start()
    assert upkeep.run_slice(link) is False
    assert place.query(ROWS) == [(1,)]
    clock.advance(seconds=1)
    assert upkeep.run_slice(link) is False
    link.close()
    assert place.query(ROWS) == [(0,)]


async def test_p10_forever_keeps_what_has_expired_and_is_still_there(place: Place) -> None:
    clock = FakeClock()
    async with place.open(clock=clock, transcripts=HOUR) as state:
        await append(state, "m1", "m2")
        await state.run_write(lambda tx: tx.entries.insert(ended_entry("t1")))
    clock.advance(hours=2)
    async with place.open(clock=clock, transcripts=FOREVER) as state:
        assert await stored(state) == [(1, "m1"), (2, "m2")]
        clock.advance(days=10_000)
        assert await append(state, "m3") == [3]
        assert len(await stored(state)) == 3
        await close(state)
    assert place.query(ENTRIES) == [(0,)]
    assert place.query("SELECT DISTINCT expires_at FROM $rows") == [(None,)]


async def test_p13_forever_does_not_bring_back_what_was_removed(place: Place) -> None:
    clock = FakeClock()
    async with place.open(clock=clock, transcripts=HOUR) as state:
        await append(state, "m1")
        clock.advance(hours=2)
        await close(state)
    async with place.open(clock=clock, transcripts=FOREVER) as state:
        assert await stored(state) == []


async def test_p14_forever_switched_off_lets_new_rows_expire_only(place: Place) -> None:
    clock = FakeClock()
    async with place.open(clock=clock, transcripts=FOREVER) as state:
        await append(state, "m1")
    async with place.open(clock=clock, transcripts=HOUR) as state:
        await append(state, "m2")
        clock.advance(hours=2)
        assert await stored(state) == [(1, "m1")]


async def test_a_message_stored_again_after_it_expired_is_stored_once(place: Place) -> None:
    clock = FakeClock()
    async with place.open(clock=clock, transcripts=HOUR, cleanup_interval_ms=2**31 - 1) as state:
        await append(state, "m1")
        clock.advance(hours=2)
        assert await append(state, "m1") == [2]
    async with place.open(clock=clock, transcripts=FOREVER) as state:
        assert await stored(state) == [(2, "m1")]
