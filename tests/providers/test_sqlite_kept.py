"""What is read again: nothing is decoded twice, nothing is old, few rows wake no thread."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.providers.sqlite_helpers import (
    KEY,
    SESSION,
    append,
    change,
    do_nothing,
    row,
    start,
)
from tests.providers.test_sqlite_tables import record
from vitehub_chat.errors import StateError
from vitehub_chat.model.rows import Row
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.providers.sqlite.kept import KeptRows
from vitehub_chat.state.providers.sqlite.state import SqliteAgentState
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.row_requests import PruneRequest, TruncateRequest
from vitehub_chat.state.sql.columns import ROWS
from vitehub_chat.state.tables import RowQuery
from vitehub_chat.state.values import WindowRequest, WindowRows

APPEND = """
import asyncio, sys
from tests.providers.sqlite_helpers import append
from vitehub_chat.state.providers.sqlite import open_sqlite

async def main():
    async with open_sqlite(sys.argv[1]) as state:
        for line in sys.stdin:
            print(*await append(state, line.strip()), flush=True)

asyncio.run(main())
"""


def window(state: SqliteAgentState, limit: int = 20) -> Coroutine[Any, Any, WindowRows]:
    return state.transcripts.window(KEY, session=None, window=WindowRequest(limit=limit))


async def shown(state: SqliteAgentState) -> list[Row]:
    return list((await window(state)).shown)


def is_immediate(call: Coroutine[Any, Any, object]) -> bool:
    """Tell whether a call answers without waiting for a thread."""
    try:
        call.send(None)
    except StopIteration:
        return True
    call.close()
    return False


async def settle(state: SqliteAgentState) -> None:
    """Wait until the thread that reads has nothing left to do."""
    await state.run_read(do_nothing)
    reader = state._engine().reader
    await asyncio.to_thread(reader.pause)
    reader.resume()


def kept_of(state: SqliteAgentState) -> KeptRows:
    return state._opening.kept


async def test_a_row_is_decoded_once(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        (written,) = await state.transcripts.append(SESSION, rows=[row("m1")])
        await append(state, "m2")
        first, again = await shown(state), await shown(state)
        assert [each is other for each, other in zip(first, again, strict=True)] == [True, True]
        assert written in [each for each in first if each is written]


async def test_what_is_shared_cannot_be_changed(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await append(state, "m1")
        part: Any = (await shown(state))[0].message.parts[0]
        with pytest.raises(TypeError, match="change a copy"):
            part["text"] = "changed"
        assert (await shown(state))[0].message.text == "hi"


async def test_what_was_handed_in_may_be_changed_and_is_not_what_is_kept(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        new = row("m1")
        await state.transcripts.append(SESSION, rows=[new])
        part: Any = new.message.parts[0]
        part["text"] = "changed"
        assert [each.message.text for each in await shown(state)] == ["hi"]


@pytest.mark.parametrize(
    "assignment",
    [
        """body = '{"v":1,"parts":[{"type":"text","text":"changed"}]}'""",
        "role = 'assistant'",
        "message_id = 'other'",
        "author = 'u2'",
        """extra = '{"usage":{"input":1}}'""",
        "turn_no = 7",
        "recorded_at = 1",
        "created_at = 1",
        "status = 'error'",
    ],
)
async def test_a_row_that_somebody_else_changed_is_read_anew(
    tmp_path: Path, assignment: str
) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite(f"file:{path}") as state:
        await append(state, "m1")
        before = await shown(state)
        change(path, f"UPDATE $rows SET {assignment}")  # noqa: S608  our own columns
        after = await shown(state)
        async with open_sqlite(f"file:{path}") as other:
            assert after == await shown(other)
        assert after != before


async def test_a_row_that_somebody_else_deleted_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite(f"file:{path}") as state:
        await append(state, "m1", "m2")
        assert len(await shown(state)) == 2
        change(path, "DELETE FROM $rows WHERE message_id = 'm1'")
        assert [each.message.id for each in await shown(state)] == ["m2"]


async def test_each_of_two_processes_sees_what_the_other_has_written(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/x.db"
    async with open_sqlite(url) as state:
        await append(state, "m0")
        with start(APPEND, url) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            for number in range(1, 11):
                await shown(state)
                other.stdin.write(f"m{number}\n")
                other.stdin.flush()
                seq = int(await asyncio.to_thread(other.stdout.readline))
                assert (await shown(state))[-1].seq == seq
            other.stdin.close()


async def test_a_write_that_failed_leaves_nothing_that_is_read(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        (seq,) = await append(state, "m1")

        def failing(tx: Any) -> None:
            (stored,) = tx.rows.pending(1) or tx.rows.select(_newest())
            tx.rows.replace(attrs.evolve(stored, role="system"))
            tx.rows.insert(attrs.evolve(stored, seq=seq + 1, message_id="m2"))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await state.run_write(failing)
        assert [(each.seq, each.message.role) for each in await shown(state)] == [(seq, "user")]


@pytest.mark.parametrize("how", ["clear", "truncate", "prune", "delete", "clean up", "close"])
async def test_nothing_that_was_deleted_is_kept(tmp_path: Path, how: str) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await append(state, "m1")
        await shown(state)
        assert len(kept_of(state)) == 1
        if how == "clear":
            await state.sessions.clear(KEY)
        elif how == "truncate":
            await state.transcripts.truncate(KEY, request=TruncateRequest(message_id="m1"))
        elif how == "prune":
            request = PruneRequest(choose=lambda rows: [each.seq for each in rows])
            await state.transcripts.prune(KEY, request=request)
        elif how == "delete":
            await state.transcripts.delete(KEY, message_id="m1")
        elif how == "clean up":
            await state.keeper.clean_up(0)
        else:
            await state.aclose()
        assert len(kept_of(state)) == 0


def test_the_rows_used_last_are_kept() -> None:
    size = _size_of(record(1))
    kept = KeptRows(limit=3 * size)
    rows = [ROWS.columns_of(record(seq)) for seq in range(1, 5)]
    first = kept.records_of(rows[:3])
    assert kept.records_of(rows[:1])[0] is first[0]
    kept.records_of(rows[3:])
    assert len(kept) == 3
    again = kept.records_of([rows[0], rows[2]])
    assert [again[0] is first[0], again[1] is first[2]] == [True, True]
    assert kept.records_of(rows[1:2])[0] is not first[1]


def test_a_row_larger_than_the_limit_is_not_kept() -> None:
    kept = KeptRows(limit=100_000)
    large = attrs.evolve(record(1), body=json.dumps("x" * 100_000))
    kept.put(large, ROWS.columns_of(large))
    assert len(kept) == 0


async def test_a_small_window_is_read_again_without_a_thread(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await append(state, "m1")
        assert not is_immediate(window(state))
        await window(state)
        await settle(state)
        assert is_immediate(window(state))
        await append(state, "m2")
        assert is_immediate(window(state))


async def test_few_windows_are_read_before_the_loop_goes_on(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await append(state, "m1")
        await window(state)
        await settle(state)
        assert [is_immediate(window(state)) for _ in range(5)] == [True] * 4 + [False]
        await settle(state)
        assert is_immediate(window(state))


@pytest.mark.parametrize("limit", [65, 1000])
async def test_a_large_window_is_read_by_a_thread(tmp_path: Path, limit: int) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await append(state, "m1")
        await window(state, limit)
        assert not is_immediate(window(state, limit))


async def test_a_large_message_is_read_by_a_thread(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await append(state, "m1")
        await window(state)
        text = "x" * 70_000
        await state.transcripts.append(SESSION, rows=[row("m2", text)])
        assert not is_immediate(window(state))
        assert [each.message.text for each in await shown(state)] == ["hi", text]
        await append(state, "m3")
        assert [len(each.message.text) for each in await shown(state)] == [2, 70_000, 2]


async def test_a_window_does_not_wait_for_a_thread_that_reads(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await append(state, "m1")
        await window(state)
        entered, go_on = threading.Event(), threading.Event()

        def slow(_tx: object) -> None:
            entered.set()
            go_on.wait()

        reading = asyncio.ensure_future(state.run_read(slow))
        await asyncio.to_thread(entered.wait)
        assert not is_immediate(window(state))
        go_on.set()
        await reading
        assert len(await shown(state)) == 1


async def test_a_window_is_read_by_a_thread_while_another_one_writes(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await append(state, "m1")
        await window(state)
        entered, go_on = threading.Event(), threading.Event()

        def slow(_tx: object) -> None:
            entered.set()
            go_on.wait()

        writing = asyncio.ensure_future(state.run_write(slow))
        await asyncio.to_thread(entered.wait)
        assert not is_immediate(window(state))
        assert len(await shown(state)) == 1
        go_on.set()
        await writing
        await settle(state)
        assert is_immediate(window(state))


async def test_a_file_that_was_deleted_is_noticed_on_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite(f"file:{path}") as state:
        await append(state, "m1")
        await window(state)
        await state.run_read(do_nothing)
        path.unlink()
        with pytest.raises(StateError, match="deleted or replaced"):
            await window(state)


def _size_of(row_record: RowRecord) -> int:
    kept = KeptRows()
    kept.put(row_record, ROWS.columns_of(row_record))
    return kept._size


def _newest() -> RowQuery:
    return RowQuery(conversation_key=1, order="descending", limit=1, now=0)
