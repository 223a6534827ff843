"""The fakes: time that is moved, ids that are counted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

from vitehub_chat.testing.clock import FakeClock
from vitehub_chat.testing.ids import CountingIds

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


def test_time_stands_still_until_it_is_moved() -> None:
    clock = FakeClock(NOON)
    assert [clock.now(), clock.now()] == [NOON, NOON]
    assert clock.advance(minutes=1, milliseconds=500) == NOON + timedelta(seconds=60.5)
    assert clock.now() == NOON + timedelta(seconds=60.5)


def test_time_can_be_moved_back() -> None:
    assert FakeClock(NOON).advance(hours=-1) == NOON - timedelta(hours=1)


def test_the_time_is_in_utc_wherever_it_starts() -> None:
    clock = FakeClock(NOON.astimezone(timezone(timedelta(hours=9))))
    assert (clock.now(), clock.now().tzinfo) == (NOON, UTC)


def test_threads_that_move_the_time_lose_no_step() -> None:
    clock = FakeClock(NOON)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: clock.advance(seconds=1), range(1000)))
    assert clock.now() == NOON + timedelta(seconds=1000)


def test_ids_count_from_one() -> None:
    ids = CountingIds("turn-")
    assert [ids(), ids(), ids()] == ["turn-1", "turn-2", "turn-3"]
