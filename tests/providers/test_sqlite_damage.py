"""Damage in a state file: what is no text any more is told, left out of lists, and kept."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from vitehub_chat.errors import StateError
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.providers.sqlite.state import SqliteAgentState
from vitehub_chat.state.values import PageRequest, WindowRequest
from vitehub_chat.testing.checks.lines import new_line
from vitehub_chat.testing.checks.material import append, ids_of, new_key
from vitehub_chat.testing.clock import FakeClock

NOT_TEXT = b'{"v":1,"parts":[{"type":"text","text":"\xff\xfe"}]}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
async def state(path: Path) -> AsyncIterator[SqliteAgentState]:
    async with open_sqlite(f"file:{path}", clock=FakeClock()) as opened:
        yield opened


def damage(path: Path, sql: str, value: bytes) -> None:
    """Put bytes in the place of a text, as a fault of a disk does."""
    with closing(sqlite3.connect(path)) as connection, connection:
        text = sql.replace("$", "vitehub_agent_state_").replace("?", "CAST(? AS TEXT)")
        assert connection.execute(text, (value,)).rowcount == 1


@pytest.mark.parametrize("column", ["body", "extra", "message_id", "role", "author", "turn_id"])
async def test_a_row_that_is_no_text_is_left_out_and_named(
    state: SqliteAgentState, path: Path, column: str
) -> None:
    key = new_key()
    await append(state, key, "m1", "m2", "m3")
    sql = f"UPDATE $rows SET {column} = ? WHERE message_id = 'm2'"  # noqa: S608
    damage(path, sql, NOT_TEXT)
    page = await state.transcripts.page(key, request=PageRequest())
    assert (ids_of(page.items), page.unreadable) == (["m1", "m3"], (2,))
    window = WindowRequest(limit=9)
    rows = await state.transcripts.window(key, session=None, window=window)
    assert (ids_of(rows.shown), rows.unreadable) == (["m1", "m3"], (2,))
    if column != "message_id":
        with pytest.raises(StateError) as caught:
            await state.transcripts.get(key, message_ids=["m2"])
        assert caught.value.code == "corrupt"
    problems = (await state.admin.check_integrity()).problems
    assert problems == {"unreadable_rows": 1}
    assert (await append(state, key, "m4"))[0].seq == 4
    assert (await state.sessions.clear(key))["rows"] == 4


async def test_a_session_that_is_no_text_is_left_out_of_lists_and_counted(
    state: SqliteAgentState, path: Path
) -> None:
    key, other = new_key(), new_key()
    for each in (key, other):
        await append(state, each, "m1")
    sql = f"UPDATE $sessions SET title = ? WHERE tenant = '{key.tenant}'"  # noqa: S608
    damage(path, sql, b"\xff")
    page = await state.sessions.list(key.tenant, agent=None)
    assert (page.items, page.unreadable) == ((), 1)
    page = await state.sessions.list(other.tenant, agent=None)
    assert (len(page.items), page.unreadable) == (1, 0)
    with pytest.raises(StateError) as caught:
        await state.sessions.get(key, session_id=None)
    assert caught.value.code == "corrupt"


async def test_a_summary_and_an_end_that_are_no_text_are_told(
    state: SqliteAgentState, path: Path
) -> None:
    line = new_line(state)
    await line.run(await line.start("a"))
    await state.summaries.save_manual(line.key, session_id=None, text="so far")
    damage(path, "UPDATE $summaries SET text = ?", b"\xc3")
    damage(path, "UPDATE $entries SET ending = ?", b'{"v":1,"status":"\xff"}')
    calls: list[Any] = [
        state.summaries.get_manual(line.key, session_id=None),
        line.outcome("a"),
    ]
    for call in calls:
        with pytest.raises(StateError) as caught:
            await call
        assert caught.value.code == "corrupt"


async def test_text_is_read_as_before_after_damage_was_met(
    state: SqliteAgentState, path: Path
) -> None:
    key = new_key()
    await append(state, key, "m1", "é😀")
    damage(path, "UPDATE $rows SET body = ? WHERE message_id = 'm1'", NOT_TEXT)
    for _ in range(2):
        page = await state.transcripts.page(key, request=PageRequest())
        assert (ids_of(page.items), page.unreadable) == (["é😀"], (1,))


async def test_what_belongs_to_nothing_is_found(state: SqliteAgentState, path: Path) -> None:
    key = new_key()
    await append(state, key, "m1", "m2")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM vitehub_agent_state_sessions")
        connection.execute("UPDATE vitehub_agent_state_conversations SET last_seq = 1")
    found = await state.admin.check_integrity()
    assert found.problems == {"rows_without_session": 2, "rows_without_conversation": 1}
