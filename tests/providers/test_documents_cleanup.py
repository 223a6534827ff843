"""Expired documents leave the store, whoever keeps it, a little at a time."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.providers.sql_seam import SeamDriver, seam_state
from tests.providers.sqlite_helpers import files_in, query
from vitehub_chat.state.providers.memory import open_memory
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.testing.checks.material import new_key
from vitehub_chat.testing.clock import FakeClock

SECOND = timedelta(seconds=1)
SCOPE = new_key()
COUNT = "SELECT count(*) FROM $documents"


async def fill(state: SteppedAgentState, count: int) -> None:
    for number in range(count):
        await state.values.set(f"k{number}", value="text", ttl=SECOND, scope=SCOPE)
    await state.values.set("permanent", value="text", scope=SCOPE)


async def touch(state: SteppedAgentState) -> None:
    """Let the store do its housekeeping: it does some with every write."""
    for _ in range(4):
        await state.values.set("permanent", value="text", scope=SCOPE)


async def test_memory_forgets_expired_documents() -> None:
    clock = FakeClock()
    async with open_memory("memory:", clock=clock, cleanup_interval_ms=1) as state:
        await fill(state, 250)
        clock.advance(seconds=1)
        await touch(state)
        assert len(state._store.tables.documents) == 1


@pytest.mark.parametrize("retention", [None, "1h", "forever"])
async def test_a_file_forgets_expired_values_whatever_rows_do(
    tmp_path: Path, retention: Any
) -> None:
    clock, path = FakeClock(), tmp_path / "x.db"
    async with open_sqlite(
        f"file:{path}",
        clock=clock,
        durability="normal",
        cleanup_interval_ms=1,
        transcripts={"retention": retention},
    ) as state:
        await fill(state, 250)
        assert query(path, COUNT) == [(251,)]
        clock.advance(seconds=1)
        await touch(state)
    assert query(path, COUNT) == [(1,)]


async def test_a_store_by_requests_forgets_expired_documents(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "x.db"
    async with seam_state(SeamDriver(str(path)), clock, cleanup_interval_ms=1) as state:
        await fill(state, 250)
        clock.advance(seconds=1)
        await touch(state)
    assert query(path, COUNT) == [(1,)]


async def test_the_text_of_a_deleted_value_leaves_the_file(tmp_path: Path) -> None:
    path, text = tmp_path / "x.db", "marker " * 1000
    async with open_sqlite(f"file:{path}", clock=FakeClock()) as state:
        await state.values.set("k", value=text, scope=SCOPE)
        await state.values.set("k", value=1, scope=SCOPE)
        await state.values.set("l", value=text, scope=SCOPE)
        await state.values.delete("l", scope=SCOPE)
    assert [name for name, held in files_in(tmp_path).items() if b"marker" in held] == []
