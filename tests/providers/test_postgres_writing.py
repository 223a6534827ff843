"""Writing and reading: whole transactions, conflicts, lost connections, many loops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

import psycopg
import pytest

from tests.providers.postgres_server import Place, free_port
from tests.providers.sqlite_helpers import KEY, SESSION, append, row, start, stored
from vitehub_chat.errors import ConfigError, StateError, StateUnavailableError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.parts import part_to_json
from vitehub_chat.model.rows import Row
from vitehub_chat.state.jobs import Job
from vitehub_chat.state.providers.postgres.link import READING, UPKEEP, WRITING, Link, full_jitter
from vitehub_chat.state.providers.postgres.state import PostgresAgentState
from vitehub_chat.state.providers.postgres.tables import PostgresTables
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import SessionRequest, WindowRequest

pytestmark = pytest.mark.service

LEFT_OPEN = """
import asyncio, sys, threading
from vitehub_chat.state.providers.postgres import open_postgres

async def main():
    state = await open_postgres(sys.argv[1], table_prefix=sys.argv[2]).__aenter__()
    await state.run_write(lambda tx: tx.conversations.ensure("written"))
    if sys.argv[3] == "busy":
        entered = threading.Event()
        def never_ends(tx):
            entered.set()
            threading.Event().wait()
        asyncio.ensure_future(state.run_write(never_ends))
        await asyncio.to_thread(entered.wait)
    print("acknowledged", flush=True)

asyncio.run(main())
"""

FAILING = """
CREATE FUNCTION $fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
    RAISE EXCEPTION ''a message'' USING ERRCODE = TG_ARGV[0], DETAIL = NEW.encoded;
END';
CREATE TRIGGER fail BEFORE INSERT ON $conversations
    FOR EACH ROW EXECUTE FUNCTION $fail(SQLSTATE)
"""

DYING = """
CREATE FUNCTION $die() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
    PERFORM pg_terminate_backend(pg_backend_pid());
    RETURN NULL;
END';
CREATE CONSTRAINT TRIGGER die AFTER INSERT ON $conversations
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.encoded = 'bad') EXECUTE FUNCTION $die()
"""


class Pause:
    """A step that holds a worker until it is let go."""

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


def conversations(place: Place) -> list[str]:
    return sorted(each for (each,) in place.query("SELECT encoded FROM $conversations"))


def cursor_of(tx: Transaction) -> psycopg.Cursor[tuple[Any, ...]]:
    return cast(PostgresTables, tx).statements._cursor


async def append_text(state: PostgresAgentState, message_id: str, text: str) -> list[int]:
    rows = await state.transcripts.append(SESSION, rows=[row(message_id, text)])
    return [each.seq for each in rows]


def text_of(stored_row: Row) -> str:
    return str(part_to_json(stored_row.message.parts[0])["text"])


@contextmanager
def holding(place: Place, statement: str) -> Iterator[None]:
    """Hold what a statement locks, over a connection of its own."""
    with place.connected() as other:
        other.execute(statement.replace("$", place.prefix).encode())
        yield


async def test_an_error_of_a_step_leaves_nothing(place: Place) -> None:
    def failing(tx: Transaction) -> None:
        tx.conversations.ensure("a")
        raise ZeroDivisionError

    async with place.open() as state:
        with pytest.raises(ZeroDivisionError):
            await state.run_write(failing)
        await state.run_write(writing("b"))
    assert conversations(place) == ["b"]


async def test_a_step_that_reads_cannot_write(place: Place) -> None:
    async with place.open() as state:
        with pytest.raises(StateError) as raised:
            await state.run_read(writing("a"))
        assert raised.value.code == "read_only"
        assert await state.run_read(lambda tx: tx.conversations.get("a")) is None


async def test_who_comes_second_runs_again_and_alone(place: Place) -> None:
    seen: list[list[Any]] = []
    async with place.open() as state, place.open() as other:
        loop = asyncio.get_running_loop()

        def step(tx: Transaction) -> int:
            found = tx.conversations.get("x")
            modes = place.query("SELECT mode FROM pg_locks WHERE relation = '$meta'::regclass")
            seen.append([found is not None, modes])
            if found is None:
                call = other.run_write(writing("x"))
                asyncio.run_coroutine_threadsafe(call, loop).result()
            return tx.conversations.ensure("x").key

        assert await state.run_write(step) == 1
    assert seen == [[False, [("RowShareLock",)]], [True, [("ExclusiveLock",)]]]


async def test_two_that_depend_on_each_other_do_not_both_see_the_past(place: Place) -> None:
    both = threading.Barrier(2)
    attempts: list[str] = []

    def taking(mine: str, yours: str) -> Callable[[Transaction], bool]:
        def step(tx: Transaction) -> bool:
            attempts.append(mine)
            is_first = tx.conversations.get(yours) is None
            if attempts.count(mine) == 1:
                both.wait()
            if is_first:
                tx.conversations.ensure(mine)
            return is_first

        return step

    async with place.open() as state:
        calls = (state.run_write(taking("a", "b")), state.run_write(taking("b", "a")))
        assert sorted(await asyncio.gather(*calls)) == [False, True]
    assert len(attempts) == 3
    assert len(conversations(place)) == 1


async def test_p21_a_restart_of_the_server_between_two_writes_is_not_noticed(
    place: Place,
) -> None:
    async with place.open() as state:
        assert await append(state, "m1") == [1]
        assert await stored(state) == [(1, "m1")]
        await asyncio.to_thread(place.server.restart)
        assert await append(state, "m2") == [2]
        await asyncio.to_thread(place.server.restart, "immediate")
        assert await stored(state) == [(1, "m1"), (2, "m2")]


async def test_a_connection_lost_within_a_step_is_made_again(place: Place) -> None:
    attempts: list[int] = []

    def step(tx: Transaction) -> int:
        pid = cursor_of(tx).connection.info.backend_pid
        attempts.append(pid)
        if len(attempts) == 1:
            place.query(f"SELECT pg_terminate_backend({pid}, 10000)")
        return tx.conversations.ensure("a").key

    async with place.open() as state:
        assert await state.run_write(step) == 1
    assert len(set(attempts)) == 2
    assert conversations(place) == ["a"]


async def test_a_commit_without_an_answer_is_not_repeated(place: Place) -> None:
    attempts: list[int] = []

    def step(tx: Transaction) -> None:
        attempts.append(tx.conversations.ensure("bad").key)

    async with place.open() as state:
        place.query(DYING)
        with pytest.raises(StateUnavailableError) as raised:
            await state.run_write(step)
        assert (raised.value.outcome, raised.value.retryable) == ("unknown", True)
        assert isinstance(raised.value.__cause__, psycopg.OperationalError)
        await state.run_write(writing("good"))
    assert len(attempts) == 1
    assert conversations(place) == ["good"]


async def test_a_server_that_stays_away_is_unavailable_and_nothing_is_written(
    place: Place,
) -> None:
    async with place.open(busy_timeout_ms=100) as state:
        await append(state, "m1")
        place.server.stop()
        try:
            with pytest.raises(StateUnavailableError) as raised:
                await append(state, "m2")
        finally:
            place.server.start()
        assert raised.value.outcome == "not_written"
        assert await append(state, "m3") == [2]


@pytest.mark.parametrize(
    ("sqlstate", "kind", "code"),
    [
        ("53100", StateError, "no_space"),
        ("25006", StateError, "read_only"),
        ("XX001", StateError, "corrupt"),
        ("23514", StateError, "state_error"),
        ("22000", StateError, "state_error"),
        ("54000", StateError, "state_error"),
        ("53200", StateUnavailableError, "state_unavailable"),
        ("57014", StateUnavailableError, "state_unavailable"),
        ("55P03", StateUnavailableError, "state_unavailable"),
        ("42501", ConfigError, "unauthorized"),
    ],
)
async def test_what_the_server_refuses_is_an_error_of_its_kind_without_values(
    place: Place, sqlstate: str, kind: type[StateError], code: str
) -> None:
    async with place.open() as state:
        place.query(FAILING.replace("SQLSTATE", f"'{sqlstate}'"))
        with pytest.raises(kind) as raised:
            await state.run_write(writing("the text"))
        error: BaseException | None = raised.value
        assert raised.value.code == code
        while error is not None:
            assert "the text" not in f"{error!r} {error}"
            error = error.__cause__ or error.__context__
    assert sqlstate in str(raised.value.__cause__)
    assert conversations(place) == []


async def test_a_store_that_is_kept_locked_is_unavailable(place: Place) -> None:
    async with place.open(busy_timeout_ms=50) as state:
        with holding(place, "LOCK TABLE $meta IN ACCESS EXCLUSIVE MODE"):
            with pytest.raises(StateUnavailableError, match="somebody else") as raised:
                await append(state, "m1")
            assert await stored(state) == []
        assert await append(state, "m1") == [1]
    assert (raised.value.outcome, raised.value.retryable) == ("not_written", True)


async def test_a_write_waits_for_another_process_as_long_as_it_was_told(place: Place) -> None:
    async with place.open(busy_timeout_ms=60_000) as state:
        with holding(place, "LOCK TABLE $meta IN EXCLUSIVE MODE"):
            task = asyncio.ensure_future(append(state, "m1"))
            assert await stored(state) == []
        assert await task == [1]


async def test_cancelling_who_waits_neither_stops_nor_halves_a_write(place: Place) -> None:
    async with place.open() as state:
        with holding(place, "LOCK TABLE $meta IN ACCESS EXCLUSIVE MODE"):
            waiting = asyncio.ensure_future(append(state, "m1", "m2"))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
    assert place.query("SELECT message_id FROM $rows ORDER BY id") == [("m1",), ("m2",)]


async def test_a_loop_that_was_closed_does_not_stop_the_others(place: Place) -> None:
    async with place.open() as state:
        gone = asyncio.new_event_loop()
        pauses = [Pause(), Pause()]
        held = [await pause.enter(state.run_write) for pause in pauses]
        state._engine().writers.submit(Job(writing("left behind"), gone, gone.create_future()))
        gone.close()
        for pause in pauses:
            pause.let_go()
        await asyncio.gather(*held)
        await state.run_write(writing("next"))
    assert conversations(place) == ["left behind", "next"]


async def test_threads_with_loops_of_their_own_share_a_state(place: Place) -> None:
    async with place.open() as state:

        async def work(name: str) -> list[list[int]]:
            calls = (append(state, f"{name}{number}") for number in range(20))
            seqs = await asyncio.gather(*calls)
            assert len(await stored(state)) >= 20
            return seqs

        def run(name: str) -> list[list[int]]:
            return asyncio.run(work(name))

        with ThreadPoolExecutor(3) as threads:
            loop = asyncio.get_running_loop()
            seqs = await asyncio.gather(*(loop.run_in_executor(threads, run, n) for n in "abc"))
        mine = await work("d")
    numbers = [seq for per_thread in (*seqs, mine) for (seq,) in per_thread]
    assert sorted(numbers) == list(range(1, 81))


async def test_two_states_of_one_store_take_turns(place: Place) -> None:
    async with place.open() as one, place.open() as two:
        calls = [append(state, f"{id(state)}-{n}") for n in range(20) for state in (one, two)]
        seqs = await asyncio.gather(*calls)
        assert await stored(one) == await stored(two)
    assert sorted(seqs) == [[number] for number in range(1, 41)]


async def test_a_reader_sees_what_was_acknowledged(place: Place) -> None:
    async with place.open() as state:
        for number in range(1, 11):
            await append(state, f"m{number}")
            window = await state.transcripts.window(
                KEY, session=None, window=WindowRequest(limit=1)
            )
            assert [each.seq for each in window.shown] == [number]


async def test_a_step_that_reads_sees_one_moment(place: Place) -> None:
    async with place.open() as state:
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


async def test_writers_do_not_wait_for_readers(place: Place) -> None:
    async with place.open() as state:
        pause = Pause()
        held = await pause.enter(state.run_read)
        assert await append(state, "m1") == [1]
        pause.let_go()
        await held


async def test_p24_a_large_write_beside_small_ones(place: Place) -> None:
    async with place.open() as state:
        large = append_text(state, "large", "x" * 20_000_000)
        small = (append(state, f"m{number}") for number in range(10))
        answers = await asyncio.gather(large, *small)
        [found] = await state.transcripts.get(KEY, message_ids=["large"])
    assert len(text_of(found)) == 20_000_000
    assert sorted(seq for (seq,) in answers) == list(range(1, 12))


@pytest.mark.parametrize("text", ["\0", "a\0b\x1a", "\x1as\x1a0", "\\u0000", "é🙂", ""])
async def test_every_text_comes_back_as_it_was(place: Place, text: str) -> None:
    async with place.open() as state:
        await append_text(state, "m1", text)
        await state.summaries.save_manual(KEY, session_id=None, text=text)
        [found] = await state.transcripts.get(KEY, message_ids=["m1"])
        summary = await state.summaries.get_manual(KEY, session_id=None)
    assert text_of(found) == text
    assert summary is not None
    assert summary.text == text


async def test_p23_ids_of_512_characters_of_any_kind_are_told_apart(place: Place) -> None:
    names = [character * 511 + last for character in ("🙂", "é", "%") for last in "ab"]
    names += ["'; --", "a:b", "a/b", "_"]
    async with place.open() as state:
        for name in names:
            key = ConversationKey(name, name, name, name)
            request = SessionRequest(conversation=key, base=name, user_key=name, chat_id=name)
            await state.transcripts.append(request, rows=[row(name)])
        for name in names:
            key = ConversationKey(name, name, name, name)
            [found] = await state.transcripts.get(key, message_ids=names)
            page = await state.sessions.list(name, agent=name, user_key=name)
            assert (found.message.id, found.seq) == (name, 1)
            assert [each.conversation for each in page.items] == [key]


async def test_a_step_that_raises_stop_iteration_is_an_error_and_no_hang(place: Place) -> None:
    async with place.open() as state:
        with pytest.raises(RuntimeError, match="StopIteration"):
            await state.run_write(lambda _tx: next(iter(())))


async def test_a_transaction_leaves_nothing_on_its_connection(place: Place) -> None:
    async with place.open(durability="normal") as state:
        link = Link(state._connector)
        seen = []
        for begins in (WRITING, READING, UPKEEP):
            inside = link.transact(begins, lambda tx: settings_of(tx.statements._cursor))
            assert link._open is not None
            seen.append((inside, settings_of(link._open.cursor)))
        link.close()
    assert seen == [(("off", "off", "5s", 0), ("on", "on", "0", 0))] * 3


def settings_of(cursor: psycopg.Cursor[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    names = ("enable_seqscan", "synchronous_commit", "lock_timeout")
    shown = ", ".join(f"current_setting('{name}')" for name in names)
    count = "(SELECT count(*) FROM pg_prepared_statements)"
    return cursor.execute(f"SELECT {shown}, {count}".encode()).fetchone()


def test_a_pause_is_of_any_length_up_to_the_longest() -> None:
    pauses = [full_jitter(2.0) for _ in range(500)]
    assert 0 <= min(pauses) < 0.5
    assert 1.5 < max(pauses) <= 2.0


def test_pauses_double_from_50_ms_until_patience_ends(place: Place) -> None:
    longest: list[float] = []

    def jitter(seconds: float) -> float:
        longest.append(seconds)
        return seconds / 10

    url = f"postgresql://postgres@127.0.0.1:{free_port()}/postgres"
    link = Link(place.open(url=url, busy_timeout_ms=1000)._connector, jitter=jitter)
    with pytest.raises(StateUnavailableError):
        link.transact(READING, lambda tx: tx.secret)
    assert longest[:7] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    assert set(longest[7:]) <= {2.0}


@pytest.mark.parametrize("how", ["idle", "busy"])
def test_a_state_that_is_left_open_does_not_hang_the_exit(place: Place, how: str) -> None:
    process = start(LEFT_OPEN, place.server.url, place.prefix, how)
    answer, _ = process.communicate(timeout=60)
    assert (answer, process.returncode) == ("acknowledged\n", 0)
    assert conversations(place) == ["written"]
