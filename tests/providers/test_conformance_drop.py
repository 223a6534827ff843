"""A store can be dropped: its tables go, those of other prefixes stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.providers.sqlite_helpers import PREFIX, append, files_in, query, stored
from vitehub_chat.errors import StateClosedError, StateError
from vitehub_chat.state.providers.memory import open_memory
from vitehub_chat.state.providers.sqlite.state import SqliteAgentState, open_sqlite
from vitehub_chat.testing import FakeClock
from vitehub_chat.testing.checks.material import append as append_to
from vitehub_chat.testing.checks.material import new_key, stored_ids

OTHER = f"{PREFIX}more_"


def open_file(path: Path, prefix: str = PREFIX) -> SqliteAgentState:
    return open_sqlite(f"file:{path}", clock=FakeClock(), table_prefix=prefix)


async def test_dropping_leaves_no_table_and_no_index_of_the_prefix(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with open_file(path) as state:
        await append(state, "m1")
        await state.drop()
    sql = "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    assert query(path, sql) == []
    assert query(path, "SELECT * FROM sqlite_sequence") == []


async def test_dropping_keeps_tables_whose_prefix_begins_alike(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with open_file(path, OTHER) as other:
        await append(other, "m1")
        async with open_file(path) as state:
            await append(state, "m2")
            await state.drop()
        assert await stored(other) == [(1, "m1")]


async def test_a_dropped_state_is_closed_and_opens_anew(tmp_path: Path) -> None:
    state = open_file(tmp_path / "state.db")
    async with state:
        await append(state, "m1")
        await state.drop()
        with pytest.raises(StateClosedError):
            await append(state, "m2")
    async with state:
        assert await stored(state) == []


async def test_dropped_text_is_in_no_file(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with open_file(path) as state:
        await append(state, "a-telling-id")
        await state.drop()
    assert not [name for name, data in files_in(tmp_path).items() if b"a-telling-id" in data]


async def test_another_object_of_dropped_tables_fails(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with open_file(path) as other, open_file(path) as state:
        await append(other, "m1")
        await state.drop()
        with pytest.raises(StateError):
            await append(other, "m2")


async def test_dropping_what_is_closed_is_refused(tmp_path: Path) -> None:
    for state in (open_file(tmp_path / "state.db"), open_memory("memory:")):
        with pytest.raises(StateClosedError):
            await state.drop()
    assert files_in(tmp_path) == {}


async def test_dropping_in_memory_empties_the_store_of_that_name() -> None:
    key = new_key()
    async with open_memory("memory:dropped") as other, open_memory("memory:dropped") as state:
        await append_to(state, key, "m1")
        await state.drop()
        assert await stored_ids(other, key) == []
        with pytest.raises(StateClosedError):
            await append_to(state, key, "m2")
