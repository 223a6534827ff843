"""What the writer knows: nothing is asked twice, and nothing is believed that is not stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.providers.sqlite_helpers import (
    KEY,
    SESSION,
    append,
    change,
    connection_of,
    row,
    stored,
)
from tests.providers.test_sqlite_kept import is_immediate, settle, window
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.providers.sqlite.heads import MOST_HEADS, Heads
from vitehub_chat.state.providers.sqlite.state import SqliteAgentState
from vitehub_chat.state.records import ConversationRecord
from vitehub_chat.state.tables import Transaction
from vitehub_chat.testing.clock import FakeClock


@contextmanager
def traced(state: SqliteAgentState) -> Iterator[dict[str, list[str]]]:
    """Collect what both connections are asked, by the first two words of each statement."""
    asked: dict[str, list[str]] = {"writer": [], "reader": []}
    for name, statements in asked.items():
        connection_of(state, name).set_trace_callback(partial(_note, statements))
    yield asked
    for name in asked:
        connection_of(state, name).set_trace_callback(None)


def _note(asked: list[str], statement: str) -> None:
    if not statement.startswith("PRAGMA busy_timeout"):  # as on a busy machine
        asked.append(" ".join(statement.split()[:2]))


@asynccontextmanager
async def knowing(path: Path, **options: Any) -> AsyncIterator[SqliteAgentState]:
    """Open a state whose writer knows the window of the conversation, `m1` and `m2`."""
    async with open_sqlite(f"file:{path}", **options) as state:
        await append(state, "m1")
        await append(state, "m1")
        await window(state)
        await settle(state)
        await window(state)
        await append(state, "m2")
        await settle_writer(state)
        yield state


async def settle_writer(state: SqliteAgentState) -> None:
    """Wait until the thread that writes has nothing left to do."""
    writer = state._engine().writer
    await asyncio.to_thread(writer.pause)
    writer.resume()


async def ids(state: SqliteAgentState) -> list[str | None]:
    await settle_writer(state)
    return [each.message.id for each in (await window(state)).shown]


async def test_a_window_after_a_write_is_made_of_what_the_writer_knows(tmp_path: Path) -> None:
    async with knowing(tmp_path / "x.db") as state:
        with traced(state) as asked:
            assert is_immediate(window(state))
        assert asked == {"writer": ["PRAGMA data_version"], "reader": []}
        assert await ids(state) == ["m1", "m2"]


async def test_a_write_asks_for_neither_conversation_nor_session_again(tmp_path: Path) -> None:
    async with knowing(tmp_path / "x.db") as state:
        with traced(state) as asked:
            assert await append(state, "m3", "m4") == [3, 4]
            await settle_writer(state)
    assert asked["writer"] == [
        "BEGIN IMMEDIATE",
        "PRAGMA data_version",
        *["SELECT conversation_key,"] * 2,  # is there a message of that id
        "UPDATE vitehub_agent_state_conversations",
        *["INSERT INTO"] * 2,
        "UPDATE vitehub_agent_state_sessions",
        "COMMIT",
    ]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("DELETE FROM $rows WHERE message_id = 'm1'", ["m2"]),
        ("UPDATE $rows SET is_shown = 0 WHERE message_id = 'm2'", ["m1"]),
        ("UPDATE $sessions SET session_id = 'other'", []),
        ("UPDATE $conversations SET encoded = 'other'", []),
    ],
)
async def test_what_somebody_else_changed_is_not_what_the_writer_knew(
    tmp_path: Path, sql: str, expected: list[str]
) -> None:
    path = tmp_path / "x.db"
    async with knowing(path) as state:
        await asyncio.to_thread(change, path, sql)
        assert await ids(state) == expected
        await append(state, "m3")
        assert await ids(state) == [*expected, "m3"]


async def test_two_states_on_one_file_count_on(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with knowing(path) as one, open_sqlite(f"file:{path}") as other:
        for number in range(3, 9):
            writer, reader = (one, other) if number % 2 else (other, one)
            assert await append(writer, f"m{number}") == [number]
            expected = [f"m{each}" for each in range(1, number + 1)]
            assert [await ids(reader), await ids(writer)] == [expected, expected]


@pytest.mark.parametrize("is_shared", [False, True])
async def test_what_a_failed_step_wrote_is_not_known(tmp_path: Path, *, is_shared: bool) -> None:
    def failing(tx: Transaction) -> None:
        conversation = tx.conversations.get(KEY.encode())
        assert conversation is not None
        session = tx.sessions.of_conversation(conversation.key, None)
        assert session is not None
        tx.conversations.allocate(conversation.key, 10)
        tx.conversations.next_generation(conversation.key)
        tx.sessions.update(attrs.evolve(session, title="failed", message_count=99))
        raise ZeroDivisionError

    async with knowing(tmp_path / "x.db") as state:
        calls: list[Awaitable[object]] = [state.run_write(failing)]
        if is_shared:
            calls.insert(0, append(state, "m3"))
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(results[-1], ZeroDivisionError)
        await append(state, "m4")
        count = 3 + is_shared
        assert [seq for seq, _ in await stored(state)] == [*range(1, count + 1)]
        (session,) = (await state.sessions.list(None, agent="helper")).items
        assert (session.title, session.message_count) == (None, count)


async def test_numbers_taken_at_once_leave_no_gap(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        assert await append(state, "m1", "m2", "m3") == [1, 2, 3]
        assert await append(state, "m4", "m4", "m5") == [4, 4, 5]
        assert await append(state, "m1", "m6") == [1, 6]
        assert await append(state, "m7") == [7]


async def test_an_answer_that_begins_again_is_looked_for(tmp_path: Path) -> None:
    """A conversation without pending rows is known; one more pending row ends that."""
    async with knowing(tmp_path / "x.db") as state:
        await append(state, "m3")
        pending = attrs.evolve(row("m4"), status="pending")
        await state.transcripts.append(SESSION, rows=[pending])
        await append(state, "m5")
        (found,) = await state.transcripts.get(KEY, message_ids=["m4"])
        assert found.status == "interrupted"


async def test_a_row_that_was_given_an_end_is_gone_at_that_time(tmp_path: Path) -> None:
    clock = FakeClock()
    async with knowing(tmp_path / "x.db", clock=clock) as state:
        await state.keeper.apply_retention(timedelta(hours=1))
        assert await ids(state) == ["m1", "m2"]
        clock.advance(hours=2)
        assert await ids(state) == []


async def test_a_cleared_conversation_is_not_what_it_was(tmp_path: Path) -> None:
    async with knowing(tmp_path / "x.db") as state:
        await state.sessions.clear(KEY)
        assert await ids(state) == []
        assert await append(state, "m3") == [3]
        assert await ids(state) == ["m3"]


def test_heads_are_bounded() -> None:
    heads = Heads()
    for number in range(3 * MOST_HEADS):
        heads.put_session(("sessions.get", number), None)
        heads.put_conversation(
            ConversationRecord(key=number, encoded=str(number), last_seq=0, generation=0)
        )
    assert len(heads._answers) + len(heads._conversations) <= MOST_HEADS
    assert heads.find_conversation(str(3 * MOST_HEADS - 1)) is not None
