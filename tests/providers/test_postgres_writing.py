"""Writing and reading: whole transactions, many loops, and every text."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.providers.postgres_server import (
    CountingDriver,
    Place,
    PostgresServer,
    conversations,
    holding,
    until,
    writing,
)
from tests.providers.sqlite_helpers import KEY, SESSION, append, row, start, stored
from vitehub_chat.errors import StateError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.parts import part_to_json
from vitehub_chat.model.rows import Row
from vitehub_chat.state.providers.postgres.pools import MOST
from vitehub_chat.state.sql.agent_state import SqlAgentState
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import SessionRequest, WindowRequest

pytestmark = pytest.mark.service

LOCKED = "LOCK TABLE $scopes IN EXCLUSIVE MODE"
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '$scopes'::regclass"
BLOCKED = "SELECT count(*) FROM pg_locks WHERE NOT granted AND transactionid IS NOT NULL"
COUNT = "SELECT count(*) FROM $conversations"

LEFT_OPEN = """
import asyncio, sys
from vitehub_chat.state.providers.postgres import open_postgres

async def main():
    state = await open_postgres(sys.argv[1], table_prefix=sys.argv[2]).__aenter__()
    write = state.run_write(lambda tx: tx.conversations.ensure("written"))
    if sys.argv[3] == "busy":
        asyncio.ensure_future(write)
        while not (await state._driver.execute(sys.argv[4], {}))[0][0]:
            await asyncio.sleep(0)
    else:
        await write
    print("done", flush=True)

asyncio.run(main())
"""


async def append_text(state: SqlAgentState, message_id: str, text: str) -> list[int]:
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


async def test_an_error_of_a_statement_takes_the_others_back(place: Place) -> None:
    async with place.open() as state:
        insert = (
            f"INSERT INTO {place.prefix}conversations (key, encoded, encoded_hash, last_seq,"  # noqa: S608
            " generation) VALUES (:key, :encoded, :encoded_hash, 0, 0)"
        )
        with pytest.raises(StateError):
            await state._driver.batch(
                [(insert, {"key": 1, "encoded": "a"}), ("UPDATE no_table SET x = 1", {})]
            )
        assert conversations(place) == []
        await state._driver.batch([(insert, {"key": 1, "encoded": "a"})])
    assert conversations(place) == ["a"]


async def test_no_statements_are_no_request(place: Place) -> None:
    async with place.open() as state:
        assert await state._driver.batch([]) == []


async def test_cancelling_who_waits_neither_stops_nor_halves_a_write(place: Place) -> None:
    async with place.open() as state:
        with holding(place, LOCKED):
            waiting = asyncio.ensure_future(append(state, "m1", "m2"))
            await until(place, WAITING, 1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
    assert place.query("SELECT message_id FROM $rows ORDER BY id") == [("m1",), ("m2",)]


async def test_a_connection_whose_caller_was_cancelled_serves_others(place: Place) -> None:
    async with place.open() as state:
        with holding(place, "LOCK TABLE $scopes IN ACCESS EXCLUSIVE MODE"):
            reads = [asyncio.ensure_future(stored(state)) for _ in range(MOST)]
            await until(place, WAITING, MOST)
            for read in reads:
                read.cancel()
            await asyncio.wait(reads)
        assert await asyncio.gather(*(stored(state) for _ in range(2 * MOST))) == [[]] * 2 * MOST
        [pool] = state._driver._own_pools().values()  # type: ignore[attr-defined]
        assert (len(pool._idle), len(pool._busy)) == (MOST, 0)


async def test_a_loop_that_was_closed_does_not_stop_the_others(place: Place) -> None:
    name = place.prefix.strip("_")
    sql = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'"  # noqa: S608
    async with place.open(url=f"{place.server.url}?application_name={name}") as state:
        gone = asyncio.new_event_loop()

        def leave() -> None:
            with holding(place, LOCKED):
                write = gone.create_task(state.run_write(writing("left behind")))
                gone.run_until_complete(until(place, WAITING, 1))
                tasks = {write, *asyncio.all_tasks(gone)}
                for task in tasks:
                    task.cancel()
                gone.run_until_complete(asyncio.wait(tasks))
                gone.close()

        await asyncio.to_thread(leave)
        await state.run_write(writing("next"))
        await until(place, sql, 2)
    await until(place, sql, 0)
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


async def test_a_loop_that_ends_closes_its_connections(place: Place) -> None:
    name = place.prefix.strip("_")
    state = place.open(url=f"{place.server.url}?application_name={name}")
    sql = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'"  # noqa: S608
    async with state:
        await until(place, sql, 1)
        await asyncio.to_thread(lambda: asyncio.run(append(state, "m1")))
        await until(place, sql, 1)


async def test_closing_ends_the_connections_of_all_loops_and_no_call(place: Place) -> None:
    name = place.prefix.strip("_")
    sql = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'"  # noqa: S608
    state = await place.open(url=f"{place.server.url}?application_name={name}").__aenter__()
    other = asyncio.new_event_loop()
    thread = threading.Thread(target=other.run_forever)
    thread.start()
    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(append(state, "m1"), other))
    with holding(place, "LOCK TABLE $scopes IN ACCESS EXCLUSIVE MODE"):
        reading = asyncio.ensure_future(stored(state))
        await until(place, WAITING, 1)
        await state.aclose()
        await until(place, sql, 1)
    assert await reading == [(1, "m1")]
    await until(place, sql, 0)
    other.call_soon_threadsafe(other.stop)
    await asyncio.to_thread(thread.join)
    other.close()


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


async def test_a_batch_that_reads_sees_one_moment_and_keeps_nobody_waiting(place: Place) -> None:
    count = COUNT.replace("$", place.prefix)
    waits = f"SELECT 1 FROM {place.prefix}meta FOR UPDATE"  # noqa: S608
    async with place.open() as state:
        with holding(place, "SELECT 1 FROM $meta FOR UPDATE"):
            reading = asyncio.ensure_future(
                state._driver.batch([(count, {}), (waits, {}), (count, {})])
            )
            await until(place, BLOCKED, 1)
            await state.run_write(writing("during"))
        assert await reading == [[[0]], [[1]], [[0]]]
        assert await state._driver.execute(count, {}) == [[1]]


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
    names += ["'; --", "a:b", "a/b", "_", ":name", "$1"]
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


async def test_a_transaction_leaves_nothing_on_its_connection(
    place: Place, postgres: PostgresServer
) -> None:
    names = ("transaction_isolation", "synchronous_commit", "lock_timeout")
    shown = ", ".join(f"current_setting('{name}')" for name in names)
    ask = f"SELECT {shown}, (SELECT count(*) FROM pg_prepared_statements)"  # noqa: S608
    driver = CountingDriver(postgres, durability="normal")
    async with place.open_over(driver):
        change = f"UPDATE {place.prefix}counters SET value = value"  # noqa: S608
        inside = [await driver.execute(ask, {}), (await driver.batch([(change, {}), (ask, {})]))[1]]
        [pool] = driver._own_pools().values()
        [connection] = pool._idle
        connection.pgconn.exit_pipeline_mode()
        connection.pgconn.nonblocking = 0
        result = connection.pgconn.exec_(ask.encode())
        outside = [result.get_value(0, column) for column in range(4)]
        connection.pgconn.finish()
    assert inside == [
        [["repeatable read", "off", "5s", 0]],
        [["read committed", "off", "5s", 0]],
    ]
    assert outside == [b"read committed", b"on", b"0", b"0"]


@pytest.mark.parametrize("how", ["idle", "busy"])
def test_a_state_that_is_left_open_does_not_hang_the_exit(place: Place, how: str) -> None:
    async def prepare() -> None:
        async with place.open():
            pass

    asyncio.run(prepare())
    lock = LOCKED if how == "busy" else "SELECT 1"
    with holding(place, lock):
        waiting = WAITING.replace("$", place.prefix)
        process = start(LEFT_OPEN, place.server.url, place.prefix, how, waiting)
        answer, _ = process.communicate(timeout=60)
    assert (answer, process.returncode) == ("done\n", 0)
