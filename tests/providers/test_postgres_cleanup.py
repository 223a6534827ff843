"""What is over leaves the database: when, how much at a time, and what `forever` keeps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.providers.postgres_server import Place, holding
from tests.providers.sqlite_helpers import KEY, append, do_nothing, stored
from vitehub_chat.state.records import EntryRecord
from vitehub_chat.state.sql.agent_state import SqlAgentState
from vitehub_chat.state.sql.upkeep import SLICE
from vitehub_chat.state.tables import Transaction
from vitehub_chat.testing.clock import FakeClock

pytestmark = pytest.mark.service

HOUR = {"retention": "1h"}
FOREVER = {"retention": "forever"}
ROWS = "SELECT count(*) FROM $rows"
ENTRIES = "SELECT count(*) FROM $entries"

MANY = """
INSERT INTO $rows (id, conversation_key, session_key, message_id, role, status, recorded_at,
    turn_no, author_hash, is_shown, expires_at, body)
SELECT id + n, conversation_key, session_key, 'n' || n, role, status, recorded_at, turn_no,
    author_hash, is_shown, expires_at, body
FROM $rows, generate_series(1, 5000) AS n
"""

REFUSING = """
CREATE FUNCTION $refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
    RAISE EXCEPTION ''not now'';
END';
CREATE TRIGGER refuse BEFORE DELETE ON $rows FOR EACH ROW EXECUTE FUNCTION $refuse()
"""


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


async def touch(state: SqlAgentState) -> None:
    """Let the state do its upkeep, of which every write does some."""
    await state.run_write(do_nothing)


async def test_an_expired_row_is_invisible_at_once_and_removed_later(place: Place) -> None:
    clock = FakeClock()
    state = place.open(clock=clock, transcripts=HOUR, cleanup_interval_ms=10_000_000)
    async with state:
        await append(state, "m1", "m2")
        clock.advance(hours=1, microseconds=-1)
        assert await stored(state) == [(1, "m1"), (2, "m2")]
        clock.advance(microseconds=1)
        assert await stored(state) == []
        await touch(state)
    assert place.query(ROWS) == [(2,)]
    async with place.open(clock=clock) as state:
        await touch(state)
    assert place.query(ROWS) == [(0,)]


def insert(*ticket_ids: str) -> Callable[[Transaction], None]:
    """Return a step that inserts entries which are over."""

    def step(tx: Transaction) -> None:
        for ticket_id in ticket_ids:
            tx.entries.insert(ended_entry(ticket_id))

    return step


async def fill(state: SqlAgentState, count: int) -> None:
    """Write rows that are over after an hour, and entries that are over at once."""
    await append(state, *(f"m{number}" for number in range(count)))
    await state.run_write(insert(*(f"t{number}" for number in range(count))))


async def test_a_slice_is_bounded_and_the_next_calls_remove_the_rest(place: Place) -> None:
    clock = FakeClock()
    async with place.open(clock=clock, transcripts=HOUR) as state:
        await fill(state, 2 * SLICE + 50)
        clock.advance(hours=2)
        left = []
        for _ in range(3):
            await touch(state)
            left += place.query(ROWS) + place.query(ENTRIES)
    assert left == [(SLICE + 50,), (SLICE + 50,), (50,), (50,), (0,), (0,)]


async def test_two_processes_remove_different_rows(place: Place) -> None:
    clock = FakeClock()
    locking = "SELECT 1 FROM $rows ORDER BY expires_at, id LIMIT 100 FOR UPDATE"
    async with place.open(clock=clock, transcripts=HOUR) as state:
        await fill(state, SLICE + 50)
        clock.advance(hours=2)
        with holding(place, locking):
            await touch(state)
            assert place.query(ROWS) == [(100,)]


async def test_upkeep_is_done_once_per_interval(place: Place) -> None:
    clock = FakeClock()
    async with place.open(clock=clock, transcripts=HOUR, cleanup_interval_ms=60_000) as state:
        await append(state, "m1")
        clock.advance(hours=2)
        await touch(state)
        await append(state, "m2")
        clock.advance(hours=1)
        await touch(state)
        assert place.query(ROWS) == [(0,)]
        await append(state, "m3")
        clock.advance(seconds=59)
        await touch(state)
        place.query("UPDATE $rows SET expires_at = 0")
        await touch(state)
        assert place.query(ROWS) == [(1,)]
        clock.advance(seconds=1)
        await touch(state)
    assert place.query(ROWS) == [(0,)]


async def test_a_server_that_fails_at_it_is_cleaned_the_next_time(place: Place) -> None:
    clock = FakeClock()
    async with place.open(clock=clock, transcripts=HOUR, cleanup_interval_ms=60_000) as state:
        await append(state, "m1")
        clock.advance(hours=2)
        place.query(REFUSING)
        assert await append(state, "m2") == [2]
        assert place.query(ROWS) == [(2,)]
        place.query("DROP TRIGGER refuse ON $rows")
        await touch(state)
        assert place.query(ROWS) == [(2,)]
        clock.advance(minutes=1)
        await touch(state)
    assert place.query(ROWS) == [(1,)]


async def test_p10_forever_keeps_what_has_expired_and_is_still_there(place: Place) -> None:
    clock = FakeClock()
    async with place.open(clock=clock, transcripts=HOUR) as state:
        await append(state, "m1", "m2")
        await state.run_write(insert("t1"))
    clock.advance(hours=2)
    async with place.open(clock=clock, transcripts=FOREVER) as state:
        assert await stored(state) == [(1, "m1"), (2, "m2")]
        clock.advance(days=10_000)
        assert await append(state, "m3") == [3]
        assert len(await stored(state)) == 3
        await touch(state)
    assert place.query(ENTRIES) == [(0,)]
    assert place.query("SELECT DISTINCT expires_at FROM $rows") == [(None,)]


async def test_p13_forever_does_not_bring_back_what_was_removed(place: Place) -> None:
    clock = FakeClock()
    async with place.open(clock=clock, transcripts=HOUR) as state:
        await append(state, "m1")
        clock.advance(hours=2)
        await touch(state)
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


async def test_rows_that_are_kept_forever_are_shown_to_those_who_knew_them_before(
    place: Place,
) -> None:
    clock = FakeClock()
    async with place.open(clock=clock, transcripts=HOUR) as state:
        await append(state, "m1")
        async with place.open(clock=clock, transcripts=FOREVER) as keeper:
            clock.advance(hours=2)
            assert await append(state, "m1") == [1]
            assert await stored(keeper) == [(1, "m1")]


async def test_more_rows_than_fit_one_transaction_are_kept_forever(place: Place) -> None:
    clock = FakeClock()
    async with place.open(clock=clock, transcripts=HOUR) as state:
        await append(state, "m1")
    place.query(MANY)
    async with place.open(clock=clock, transcripts=FOREVER):
        assert place.query("SELECT count(*), count(expires_at) FROM $rows") == [(5001, 0)]
