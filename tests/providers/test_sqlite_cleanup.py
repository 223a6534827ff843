"""What is over leaves the file: when, how much at a time, and what `forever` keeps."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.providers.sqlite_helpers import KEY, PREFIX, append, do_nothing, query, stored
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.providers.sqlite.cleanup import SLICE, Cleanup
from vitehub_chat.state.providers.sqlite.state import SqliteAgentState
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.records import EntryRecord
from vitehub_chat.state.sql.named import load_statements
from vitehub_chat.state.tables import Transaction
from vitehub_chat.testing.clock import FakeClock

HOUR = {"retention": "1h"}
ROWS = "SELECT count(*) FROM $rows"
ENTRIES = "SELECT count(*) FROM $entries"
TEXTS = load_statements("sqlite", PREFIX)


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


async def rest(state: SqliteAgentState) -> None:
    """Let the worker do its housekeeping: it does some after every write."""
    for _ in range(5):
        await state.run_write(do_nothing)


def opened(path: Path, clock: FakeClock, **options: Any) -> SqliteAgentState:
    return open_sqlite(f"file:{path}", clock=clock, durability="normal", **options)


async def test_an_expired_row_is_invisible_at_once_and_removed_later(tmp_path: Path) -> None:
    path, clock = tmp_path / "x.db", FakeClock()
    async with opened(path, clock, transcripts=HOUR, cleanup_interval_ms=10_000_000) as state:
        await append(state, "m1", "m2")
        clock.advance(hours=1, microseconds=-1)
        assert await stored(state) == [(1, "m1"), (2, "m2")]
        clock.advance(microseconds=1)
        assert await stored(state) == []
        await rest(state)
        assert query(path, ROWS) == [(2,)]
        clock.advance(hours=2)
        await rest(state)
        assert query(path, ROWS) == [(0,)]


async def test_cleanup_runs_at_open_and_gives_pages_back(tmp_path: Path) -> None:
    path, clock = tmp_path / "x.db", FakeClock()
    async with opened(path, clock, transcripts=HOUR) as state:
        await append(state, *(f"m{number}" for number in range(450)))
    size = path.stat().st_size
    clock.advance(hours=2)
    async with opened(path, clock) as state:
        await rest(state)
        assert query(path, ROWS) == [(0,)]
    assert path.stat().st_size < size
    assert query(path, "PRAGMA freelist_count") == [(0,)]


async def fill(path: Path, clock: FakeClock, count: int) -> None:
    """Write rows and entries that are over after an hour."""

    def insert(tx: Transaction) -> None:
        for number in range(count):
            tx.entries.insert(ended_entry(f"t{number}"))

    async with opened(path, clock, transcripts=HOUR) as state:
        await rest(state)
        await append(state, *(f"m{number}" for number in range(count)))
        await state.run_write(insert)


def test_a_slice_is_bounded(tmp_path: Path) -> None:
    path, clock = tmp_path / "x.db", FakeClock()
    asyncio.run(fill(path, clock, 2 * SLICE + 50))
    clock.advance(hours=2)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        cleanup = Cleanup(Statements(connection, TEXTS), clock, 1000)
        left = []
        while cleanup.run_slice(connection):
            left += query(path, ROWS) + query(path, ENTRIES)
        assert left == [(SLICE + 50,), (SLICE + 50,), (50,), (50,)]
    assert query(path, ROWS) + query(path, ENTRIES) == [(0,), (0,)]


def test_a_busy_file_is_cleaned_the_next_time(tmp_path: Path) -> None:
    path, clock = tmp_path / "x.db", FakeClock()
    asyncio.run(fill(path, clock, 1))
    clock.advance(hours=2)
    with (
        closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        cleanup = Cleanup(Statements(connection, TEXTS), clock, 1000)
        other.execute("BEGIN IMMEDIATE")
        assert cleanup.run_slice(connection) is False
        other.execute("ROLLBACK")
        assert cleanup.run_slice(connection) is False
        assert query(path, ROWS) == [(1,)]
        clock.advance(seconds=1)
        assert cleanup.run_slice(connection) is False
        assert query(path, ROWS) == [(0,)]


async def test_p10_forever_keeps_what_has_expired_and_is_still_there(tmp_path: Path) -> None:
    path, clock = tmp_path / "x.db", FakeClock()
    async with opened(path, clock, transcripts=HOUR) as state:
        await append(state, "m1", "m2")
        await state.run_write(lambda tx: tx.entries.insert(ended_entry("t1")))
    clock.advance(hours=2)
    async with opened(path, clock, transcripts={"retention": "forever"}) as state:
        assert await stored(state) == [(1, "m1"), (2, "m2")]
        await rest(state)
        assert query(path, ENTRIES) == [(0,)]
        clock.advance(days=10_000)
        assert await append(state, "m3") == [3]
        assert len(await stored(state)) == 3
    assert query(path, "SELECT DISTINCT expires_at FROM $rows") == [(None,)]


async def test_p13_forever_does_not_bring_back_what_was_removed(tmp_path: Path) -> None:
    path, clock = tmp_path / "x.db", FakeClock()
    async with opened(path, clock, transcripts=HOUR) as state:
        await append(state, "m1")
        clock.advance(hours=2)
        await rest(state)
    async with opened(path, clock, transcripts={"retention": "forever"}) as state:
        assert await stored(state) == []


async def test_p14_forever_switched_off_lets_new_rows_expire_only(tmp_path: Path) -> None:
    path, clock = tmp_path / "x.db", FakeClock()
    async with opened(path, clock, transcripts={"retention": "forever"}) as state:
        await append(state, "m1")
    async with opened(path, clock, transcripts=HOUR) as state:
        await append(state, "m2")
        clock.advance(hours=2)
        await rest(state)
        assert await stored(state) == [(1, "m1")]


async def test_a_message_stored_again_after_it_expired_is_stored_once(tmp_path: Path) -> None:
    path, clock = tmp_path / "x.db", FakeClock()
    async with opened(path, clock, transcripts=HOUR, cleanup_interval_ms=2**31 - 1) as state:
        await append(state, "m1")
        clock.advance(hours=2)
        assert await append(state, "m1") == [2]
    async with opened(path, clock, transcripts={"retention": "forever"}) as state:
        assert await stored(state) == [(2, "m1")]
