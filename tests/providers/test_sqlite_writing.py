"""Writing and reading together: group commit, errors, cancellation, loops, threads, full disks."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.providers.sqlite_helpers import (
    KEY,
    SESSION,
    append,
    connection_of,
    query,
    row,
    start,
    stored,
)
from vitehub_chat.errors import ChatError, StateError, StateUnavailableError
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.providers.sqlite.jobs import Job
from vitehub_chat.state.providers.sqlite.state import SqliteAgentState
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import WindowRequest

LEFT_OPEN = """
import asyncio, sys, threading
from vitehub_chat.state.providers.sqlite import open_sqlite

async def main():
    state = await open_sqlite(sys.argv[1]).__aenter__()
    await state.run_write(lambda tx: tx.conversations.ensure("written"))
    if sys.argv[2] == "busy":
        entered = threading.Event()
        def never_ends(tx):
            entered.set()
            threading.Event().wait()
        asyncio.ensure_future(state.run_write(never_ends))
        await asyncio.to_thread(entered.wait)
    print("acknowledged", flush=True)

asyncio.run(main())
"""


class Pause:
    """A step that holds the worker until it is let go, so that others wait together."""

    def __init__(self) -> None:
        self._entered = threading.Event()
        self._go_on = threading.Event()

    def __call__(self, _tx: Transaction) -> None:
        self._entered.set()
        self._go_on.wait()

    async def enter(self, run: Callable[[Any], Awaitable[None]]) -> asyncio.Future[None]:
        task = asyncio.ensure_future(run(self))
        await asyncio.to_thread(self._entered.wait)
        return task

    def let_go(self) -> None:
        self._go_on.set()


def writing(encoded: str) -> Callable[[Transaction], int]:
    return lambda tx: tx.conversations.ensure(encoded).key


def failing(encoded: str) -> Callable[[Transaction], int]:
    def step(tx: Transaction) -> int:
        tx.conversations.ensure(encoded)
        raise ZeroDivisionError(encoded)

    return step


async def together(state: SqliteAgentState, *steps: Callable[[Transaction], Any]) -> list[Any]:
    """Run steps that wait at the same time, and go along with the one that they wait for."""
    pause = Pause()
    held = await pause.enter(state.run_write)
    tasks = [asyncio.ensure_future(state.run_write(step)) for step in steps]
    await asyncio.sleep(0)
    pause.let_go()
    await asyncio.wait((held, *tasks))
    return await asyncio.gather(*tasks, return_exceptions=True)


def conversations(path: Path) -> list[str]:
    return [encoded for (encoded,) in query(path, "SELECT encoded FROM $conversations")]


async def test_what_waits_together_is_committed_together(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await state.run_write(writing("first"))
        statements: list[str] = []
        connection_of(state).set_trace_callback(statements.append)
        answers = await together(state, *(writing(f"c{number}") for number in range(100)))
        connection_of(state).set_trace_callback(None)
    assert answers == list(range(2, 102))
    assert statements.count("COMMIT") == 2
    assert statements.count("SAVEPOINT job") == 0


async def test_what_comes_while_others_are_written_is_committed_with_them(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await state.run_write(writing("first"))
        statements: list[str] = []
        connection_of(state).set_trace_callback(statements.append)
        answers = await together(state, writing("a"), failing("b"), writing("c"))
        connection_of(state).set_trace_callback(None)
    assert [type(each) for each in answers] == [int, ZeroDivisionError, int]
    assert statements.count("COMMIT") == 1
    assert statements.count("SAVEPOINT job") == 4


async def test_a_write_alone_needs_no_savepoint(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await state.run_write(writing("first"))
        statements: list[str] = []
        connection_of(state).set_trace_callback(statements.append)
        await state.run_write(writing("c1"))
        connection_of(state).set_trace_callback(None)
    # On a busy machine it may look as if others had written, for whom it would wait shortly.
    beside = ("SELECT", "INSERT", "PRAGMA busy_timeout")
    assert [each for each in statements if not each.startswith(beside)] == [
        "BEGIN IMMEDIATE",
        "PRAGMA data_version",
        "COMMIT",
    ]


async def test_an_error_of_one_write_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite(f"file:{path}") as state:
        answers = await together(state, writing("a"), failing("b"), writing("c"))
        assert [type(each) for each in answers] == [int, ZeroDivisionError, int]
        with pytest.raises(ZeroDivisionError):
            await state.run_write(failing("d"))
    assert conversations(path) == ["a", "c"]


async def test_a_commit_that_fails_fails_for_everyone(tmp_path: Path) -> None:
    path = tmp_path / "x.db"

    def break_a_promise(_tx: Transaction) -> None:
        connection.execute("PRAGMA defer_foreign_keys = ON")
        connection.execute("INSERT INTO child VALUES (1)")

    async with open_sqlite(f"file:{path}") as state:
        connection = connection_of(state)
        connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        connection.execute("CREATE TABLE child (id REFERENCES parent)")
        answers = await together(state, writing("a"), break_a_promise, writing("b"))
        assert [type(each) for each in answers] == [StateError] * 3
        assert len({id(each) for each in answers}) == 3
        assert await state.run_write(writing("c")) == 1
    assert conversations(path) == ["c"]


async def test_a_full_disk_fails_the_write_that_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "x.db"

    def too_much(tx: Transaction) -> None:
        tx.conversations.ensure("x" * 1_000_000)

    async with open_sqlite(f"file:{path}") as state:
        pages = connection_of(state).execute("PRAGMA page_count").fetchone()[0]
        connection_of(state).execute(f"PRAGMA max_page_count = {pages + 20}")
        answers = await together(state, writing("a"), failing("b"), too_much, writing("c"))
        assert [type(each) for each in answers] == [int, ZeroDivisionError, StateError, int]
        assert answers[2].code == "no_space"
        assert isinstance(answers[2].__cause__, sqlite3.OperationalError)
        with pytest.raises(StateError, match="no space left"):
            await state.run_write(too_much)
    assert conversations(path) == ["a", "c"]


async def test_a_file_that_cannot_be_written_is_an_error_of_its_own(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        connection_of(state).execute("PRAGMA query_only = ON")
        with pytest.raises(StateError) as raised:
            await state.run_write(writing("a"))
        assert raised.value.code == "read_only"
        connection_of(state).execute("PRAGMA query_only = OFF")
        assert await state.run_write(writing("a")) == 1


async def test_a_step_that_reads_cannot_write(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        with pytest.raises(StateError):
            await state.run_read(writing("a"))
        assert await state.run_write(writing("a")) == 1


async def test_a_busy_file_is_unavailable_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite(f"file:{path}", busy_timeout_ms=1) as state:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StateUnavailableError) as raised:
                await append(state, "m1")
            assert await stored(state) == []
            other.execute("ROLLBACK")
        assert await append(state, "m1") == [1]
    assert (raised.value.outcome, raised.value.retryable) == ("not_written", True)
    assert isinstance(raised.value.__cause__, sqlite3.OperationalError)


async def test_a_write_waits_for_another_process_as_long_as_it_was_told(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite(f"file:{path}", busy_timeout_ms=60_000) as state:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            task = asyncio.ensure_future(append(state, "m1"))
            assert await stored(state) == []
            other.execute("ROLLBACK")
            assert await task == [1]


async def test_a_file_that_others_were_writing_to_is_looked_at_often_and_given_up_in_time(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite(f"file:{path}", busy_timeout_ms=50) as state:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for message_id in ("m1", "m2"):  # the second one knows that somebody is there
                with pytest.raises(StateUnavailableError):
                    await append(state, message_id)
            other.execute("ROLLBACK")
        assert await append(state, "m1") == [1]
        assert connection_of(state).execute("PRAGMA busy_timeout").fetchone() == (50,)


async def test_no_error_tells_what_was_to_be_written(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        connection_of(state).execute("PRAGMA query_only = ON")
        with pytest.raises(StateError) as raised:
            await state.transcripts.append(SESSION, rows=[row("m1", "the text")])
        connection_of(state).execute("PRAGMA query_only = OFF")
    told = f"{raised.value} {raised.value.__cause__}"
    assert "the text" not in told
    assert str(tmp_path) not in told
    assert isinstance(raised.value, ChatError)


async def test_cancelling_who_waits_neither_stops_nor_halves_a_write(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite(f"file:{path}") as state:
        pause = Pause()
        held = await pause.enter(state.run_write)
        waiting = asyncio.ensure_future(append(state, "m1", "m2"))
        await asyncio.sleep(0)
        held.cancel()
        waiting.cancel()
        pause.let_go()
        assert await append(state, "m3") == [3]
        assert await stored(state) == [(1, "m1"), (2, "m2"), (3, "m3")]
    assert held.cancelled()
    assert waiting.cancelled()


async def test_a_loop_that_was_closed_does_not_stop_the_others(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        gone = asyncio.new_event_loop()
        pause = Pause()
        held = await pause.enter(state.run_write)
        state._engine().writer.submit(Job(writing("left behind"), gone, gone.create_future()))
        gone.close()
        pause.let_go()
        await held
        assert await state.run_write(writing("next")) == 2


async def test_threads_with_loops_of_their_own_share_a_state(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db", durability="normal") as state:

        async def work(name: str) -> list[list[int]]:
            calls = (append(state, f"{name}{number}") for number in range(50))
            seqs = await asyncio.gather(*calls)
            assert len(await stored(state)) >= 50
            return seqs

        def run(name: str) -> list[list[int]]:
            return asyncio.run(work(name))

        with ThreadPoolExecutor(4) as threads:
            loop = asyncio.get_running_loop()
            names = ("a", "b", "c", "d")
            seqs = await asyncio.gather(*(loop.run_in_executor(threads, run, n) for n in names))
        mine = await work("e")
    numbers = [seq for per_thread in (*seqs, mine) for (seq,) in per_thread]
    assert sorted(numbers) == list(range(1, 251))


async def test_a_reader_sees_what_was_acknowledged(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        for number in range(1, 21):
            await append(state, f"m{number}")
            window = await state.transcripts.window(
                KEY, session=None, window=WindowRequest(limit=1)
            )
            assert [each.seq for each in window.shown] == [number]


async def test_a_step_that_reads_sees_one_moment(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await state.run_write(writing("before"))
        entered, go_on = threading.Event(), threading.Event()

        def reading(tx: Transaction) -> tuple[object, object]:
            first = tx.conversations.get("during")
            entered.set()
            go_on.wait()
            return first, tx.conversations.get("during")

        task = asyncio.ensure_future(state.run_read(reading))
        await asyncio.to_thread(entered.wait)
        await state.run_write(writing("during"))
        go_on.set()
        assert await task == (None, None)


async def test_writers_do_not_wait_for_readers(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        pause = Pause()
        held = await pause.enter(state.run_read)
        assert await append(state, "m1") == [1]
        pause.let_go()
        await held


async def test_p24_a_large_write_beside_small_ones(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db", durability="normal") as state:
        large = state.transcripts.append(SESSION, rows=[row("large", "x" * 20_000_000)])
        small = (append(state, f"m{number}") for number in range(10))
        answers = await asyncio.gather(large, *small)
        assert [each[0] for each in answers[1:]] == list(range(2, 12))


async def test_a_step_that_raises_stop_iteration_is_an_error_and_no_hang(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        with pytest.raises(RuntimeError, match="StopIteration"):
            await state.run_write(lambda _tx: next(iter(())))


async def test_two_states_of_one_file_take_turns(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/x.db"
    async with open_sqlite(url) as one, open_sqlite(url) as two:
        calls = [append(state, f"{id(state)}-{n}") for n in range(50) for state in (one, two)]
        seqs = await asyncio.gather(*calls)
        assert await stored(one) == await stored(two)
    assert sorted(seqs) == [[number] for number in range(1, 101)]


@pytest.mark.parametrize("how", ["idle", "busy"])
def test_a_state_that_is_left_open_does_not_hang_the_exit(tmp_path: Path, how: str) -> None:
    path = tmp_path / "x.db"
    process = start(LEFT_OPEN, path, how)
    answer, _ = process.communicate(timeout=60)
    assert (answer, process.returncode) == ("acknowledged\n", 0)
    assert conversations(path) == ["written"]
