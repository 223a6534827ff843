"""Windows that are read again: nothing is asked while nothing changed, nothing old is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.sqlite_helpers import KEY, append, change, connection_of, row
from tests.providers.test_sqlite_kept import is_immediate, kept_of, settle, window
from tests.providers.test_sqlite_tables import record
from vitehub_chat.model.clock import to_epoch_us
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.providers.sqlite.recall import Answer, Recall
from vitehub_chat.state.providers.sqlite.state import SqliteAgentState
from vitehub_chat.state.providers.sqlite.tails import Tails
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.row_requests import PruneRequest, TruncateRequest
from vitehub_chat.state.steps.reading import window_of
from vitehub_chat.state.tables import RowQuery, Transaction
from vitehub_chat.state.values import SessionRequest, WindowRequest
from vitehub_chat.testing.clock import FakeClock

READ_ALONE = ["BEGIN", "PRAGMA data_version", "COMMIT"]


async def read_on_loop(state: SqliteAgentState) -> list[str | None]:
    """Read the window on the loop, as it is done from the second time on."""
    await window(state)
    await settle(state)
    call = window(state)
    try:
        call.send(None)
    except StopIteration as answer:
        return [each.message.id for each in answer.value.shown]
    raise AssertionError("a thread was asked")


async def read_in_writer(state: SqliteAgentState) -> list[str | None]:
    """Read the window as it is read with the message of a turn, under the lock of the file."""

    def step(tx: Transaction) -> list[str | None]:
        now = to_epoch_us(state.clock.now())
        found = window_of(tx, KEY, None, WindowRequest(limit=20), now)
        return [each.message.id for each in found.shown]

    return await state.run_write(step)


READS = pytest.mark.parametrize("read", [read_on_loop, read_in_writer])
Read = Callable[[SqliteAgentState], Awaitable[list[str | None]]]


def about_rows(statements: list[str]) -> list[str]:
    return [each for each in statements if "SELECT" in each and "ORDER BY id DESC" in each]


async def test_a_window_that_is_read_again_asks_nothing(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await append(state, "m1", "m2")
        await read_on_loop(state)
        statements: list[str] = []
        connection_of(state, "reader").set_trace_callback(statements.append)
        assert is_immediate(window(state))
        connection_of(state, "reader").set_trace_callback(None)
    assert statements == READ_ALONE


async def test_the_window_of_a_turn_asks_for_no_rows_that_are_known(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await append(state, "m1", "m2")
        await read_in_writer(state)
        statements: list[str] = []
        connection_of(state).set_trace_callback(statements.append)
        await append(state, "m3")
        assert await read_in_writer(state) == ["m1", "m2", "m3"]
        connection_of(state).set_trace_callback(None)
    assert about_rows(statements) == []


@READS
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("DELETE FROM $rows WHERE message_id = 'm1'", ["m2"]),
        ("UPDATE $rows SET message_id = 'x' WHERE message_id = 'm1'", ["x", "m2"]),
        ("UPDATE $rows SET is_shown = 0 WHERE message_id = 'm2'", ["m1"]),
        ("UPDATE $sessions SET session_id = 'other'", []),
    ],
)
async def test_what_somebody_else_changed_is_seen(
    tmp_path: Path, read: Read, sql: str, expected: list[str]
) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite(f"file:{path}") as state:
        await append(state, "m1", "m2")
        assert await read(state) == ["m1", "m2"]
        await asyncio.to_thread(change, path, sql)
        assert await read(state) == expected


@READS
async def test_what_another_state_on_the_file_wrote_is_seen(tmp_path: Path, read: Read) -> None:
    url = f"file:{tmp_path}/x.db"
    async with open_sqlite(url) as state, open_sqlite(url) as other:
        await append(state, "m1")
        for number in range(2, 6):
            writer, reader = (other, state) if number % 2 else (state, other)
            await append(writer, f"m{number}")
            expected = [f"m{each}" for each in range(1, number + 1)]
            assert [await read(reader), await read(writer)] == [expected, expected]


@READS
async def test_a_row_that_expires_is_gone_although_nothing_was_written(
    tmp_path: Path, read: Read
) -> None:
    clock = FakeClock()
    transcripts = {"retention": "1h"}
    async with open_sqlite(f"file:{tmp_path}/x.db", clock=clock, transcripts=transcripts) as state:
        await append(state, "m1")
        clock.advance(minutes=30)
        await append(state, "m2")
        assert await read(state) == ["m1", "m2"]
        clock.advance(minutes=30)
        assert await read(state) == ["m2"]


@READS
async def test_a_write_that_failed_changes_no_window(tmp_path: Path, read: Read) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await append(state, "m1")
        assert await read(state) == ["m1"]

        def failing(tx: Transaction) -> None:
            (stored,) = tx.rows.select(newest(1))
            tx.rows.insert(attrs.evolve(stored, seq=9, message_id="m9"))
            tx.rows.remove([stored])
            assert stored not in tx.rows.select(newest(9))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await state.run_write(failing)
        together = asyncio.gather(
            append(state, "m3"), state.run_write(failing), return_exceptions=True
        )
        assert [type(each) for each in await together] == [list, ZeroDivisionError]
        assert await read(state) == ["m1", "m3"]


@pytest.mark.parametrize(
    "how", ["clear", "truncate", "prune", "hide", "delete", "replace", "erase"]
)
async def test_nothing_that_is_gone_stays_in_memory(tmp_path: Path, how: str) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        asked = SessionRequest(conversation=KEY, user_key="somebody")
        await state.transcripts.append(asked, rows=[row("m1", "marker")])
        await read_on_loop(state)
        await read_in_writer(state)
        assert "marker" in texts_in_memory(state)
        transcripts = state.transcripts
        if how == "clear":
            await state.sessions.clear(KEY)
        elif how == "truncate":
            await transcripts.truncate(KEY, request=TruncateRequest(message_id="m1"))
        elif how in {"prune", "hide"}:
            chosen = PruneRequest(choose=lambda rows: [r.seq for r in rows], hides=how == "hide")
            await transcripts.prune(KEY, request=chosen)
        elif how == "delete":
            await transcripts.delete(KEY, message_id="m1")
        elif how == "replace":
            await transcripts.replace(KEY, row=row("m1", "better"))
        else:
            await state.admin.erase_person(None, "somebody")
        assert "marker" not in texts_in_memory(state)
        assert await read_on_loop(state) == (["m1"] if how == "replace" else [])


def texts_in_memory(state: SqliteAgentState) -> str:
    """Return what rows say that are kept in any way."""
    kept = kept_of(state)
    rows: list[Any] = [each.record for each in kept._kept.values()]
    for answer in kept.recall._answers.values():
        rows.extend(answer.value if isinstance(answer.value, tuple) else ())
    for tail in kept.tails._tails.values():
        rows.extend(tail.rows.values())
    return "".join(each.body for each in rows)


def newest(limit: int, now: int = 0, **more: Any) -> RowQuery:
    return RowQuery(conversation_key=1, order="descending", limit=limit, now=now, **more)


def test_answers_of_one_connection_say_nothing_of_another() -> None:
    recall = Recall()
    recall.begin(("one", 1))
    recall.keep(("one", 1), "question", Answer("answer"))
    assert recall.find("question") is not None
    recall.begin(("other", 1))
    assert recall.find("question") is None


def test_what_was_read_before_it_was_forgotten_is_not_kept() -> None:
    recall = Recall()
    recall.begin(1)
    recall.clear()
    recall.keep(1, "question", Answer("answer"))
    assert len(recall) == 0


def test_an_answer_holds_from_when_it_was_asked_until_a_row_expires() -> None:
    recall = Recall()
    recall.begin(1)
    recall.keep(1, "question", Answer("answer", since=10, until=20))
    assert [recall.find("question", now) is not None for now in (9, 10, 19, 20)] == [
        False,
        True,
        True,
        False,
    ]


def test_the_answers_used_last_are_kept() -> None:
    recall = Recall(limit=3 * (512 + 100))
    recall.begin(1)
    for name in ("a", "b", "c"):
        recall.keep(1, name, Answer(name, size=100))
    recall.find("a")
    recall.keep(1, "d", Answer("d", size=100))
    recall.keep(1, "large", Answer("large", size=10_000))
    assert [name for name in ("a", "b", "c", "d", "large") if recall.find(name)] == ["a", "c", "d"]


def test_tails_are_bounded_in_bytes_and_in_rows() -> None:
    tails = Tails(limit=80_000)
    tails.begin(1)
    for key in range(1, 200):
        query = attrs.evolve(newest(9), conversation_key=key)
        tails.learn(query, [attrs.evolve(record(1), conversation_key=key)])
    assert len(tails) == 80_000 // (512 + len("{}"))
    tails = Tails()
    tails.begin(1)
    tails.learn(newest(9), [])
    for seq in range(1, 1001):
        tails.insert(record(seq))
    assert len(tails._tails[1].rows) <= 400
    assert [each.seq for each in tails.select(newest(3)) or ()] == [1000, 999, 998]
    assert tails.select(newest(500)) is None


def test_a_row_larger_than_the_rest_leaves_the_other_tails() -> None:
    tails = Tails(limit=80_000)
    tails.begin(1)
    tails.learn(newest(9), [record(1)])
    large = attrs.evolve(record(1), conversation_key=2, body="x" * 50_000)
    tails.learn(attrs.evolve(newest(9), conversation_key=2), [large])
    assert [key for key in (1, 2) if key in tails._tails] == [1]


_seqs = st.integers(1, 12)
_sessions = st.integers(1, 2)
_changes = st.one_of(
    st.tuples(st.just("insert"), _seqs, _sessions, st.booleans()),
    st.tuples(st.just("replace"), _seqs, _sessions, st.booleans()),
    st.tuples(st.just("remove"), _seqs, _sessions, st.booleans()),
    st.tuples(st.just("learn"), _seqs, _sessions, st.booleans()),
)
_queries = st.builds(
    newest,
    st.integers(1, 6),
    now=st.integers(0, 6),
    session_key=st.none() | _sessions,
    is_shown=st.none() | st.booleans(),
    above=st.none() | st.integers(0, 9),
    below=st.none() | st.integers(4, 14),
)


@given(st.lists(st.tuples(_changes, _queries), max_size=30))
def test_tails_answer_what_the_table_would_or_nothing(
    story: list[tuple[tuple[str, int, int, bool], RowQuery]],
) -> None:
    tails, table, last = Tails(), dict[int, RowRecord](), 0
    tails.begin(1)
    for (what, seq, session_key, flag), query in story:
        made = attrs.evolve(
            record(seq),
            session_key=session_key,
            is_shown=flag,
            expires_at=7 + seq if flag else None,
        )
        if what == "insert":
            last += 1
            table[last] = attrs.evolve(made, seq=last, message_id=f"m{last}")
            tails.insert(table[last])
        elif what == "replace" and seq in table:
            table[seq] = made
            tails.replace(made)
        elif what == "remove" and seq in table:
            tails.remove([table.pop(seq)])
        elif what == "learn":
            whole = newest(seq)
            tails.learn(whole, answer(table, whole))
        assert tails.select(query) in (None, answer(table, query))


def answer(table: dict[int, RowRecord], query: RowQuery) -> list[RowRecord]:
    """Return what a query finds in a table, in the plainest way."""
    found = [
        each
        for seq, each in sorted(table.items(), reverse=True)
        if (query.above or 0) < seq < (query.below or 99)
        and query.session_key in {None, each.session_key}
        and query.is_shown in {None, each.is_shown}
        and (each.expires_at is None or each.expires_at > query.now)
    ]
    return found[: query.limit]
