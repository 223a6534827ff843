"""Writing and reading: whole transactions, many loops, and every text."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.providers.postgres_server import (
    Place,
    conversations,
    holding,
    writing,
)
from tests.providers.sqlite_helpers import KEY, SESSION, append, row, start, stored
from vitehub_chat.errors import StateError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.parts import part_to_json
from vitehub_chat.model.rows import Row
from vitehub_chat.state.jobs import Job
from vitehub_chat.state.providers.postgres.link import READING, UPKEEP, WRITING, Link
from vitehub_chat.state.providers.postgres.state import PostgresAgentState
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


async def append_text(state: PostgresAgentState, message_id: str, text: str) -> list[int]:
    rows = await state.transcripts.append(SESSION, rows=[row(message_id, text)])
    return [each.seq for each in rows]


def text_of(stored_row: Row) -> str:
    return str(part_to_json(stored_row.message.parts[0])["text"])


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


@pytest.mark.parametrize("how", ["idle", "busy"])
def test_a_state_that_is_left_open_does_not_hang_the_exit(place: Place, how: str) -> None:
    process = start(LEFT_OPEN, place.server.url, place.prefix, how)
    answer, _ = process.communicate(timeout=60)
    assert (answer, process.returncode) == ("acknowledged\n", 0)
    assert conversations(place) == ["written"]
