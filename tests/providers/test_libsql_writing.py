"""Writing to a real libSQL server: all or nothing, one request at a time, many batches in each."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from aiohttp import web

from tests.providers.libsql_helpers import (
    Loopback,
    Received,
    driving,
    forward_to,
    make_driver,
)
from tests.providers.sqld_server import SqldServer
from vitehub_chat.errors import StateConflictError, StateError
from vitehub_chat.state.providers.libsql.driver import LibsqlDriver
from vitehub_chat.state.providers.libsql.limits import Limits
from vitehub_chat.state.sql.driver import Statement

pytestmark = pytest.mark.service

INSERT = "INSERT INTO things (value) VALUES (:value) RETURNING value"


@pytest.fixture
async def driver(sqld: SqldServer) -> AsyncIterator[LibsqlDriver]:
    async with driving(sqld.url) as driver:
        await make_table(driver)
        yield driver


async def make_table(driver: LibsqlDriver) -> None:
    await driver.batch(
        [
            ("DROP TABLE IF EXISTS things", {}),
            ("CREATE TABLE things (id INTEGER PRIMARY KEY, value TEXT UNIQUE) STRICT", {}),
        ]
    )


def insert(*values: str) -> list[Statement]:
    return [(INSERT, {"value": value}) for value in values]


async def stored(driver: LibsqlDriver) -> list[Any]:
    return [value for (value,) in await driver.execute("SELECT value FROM things ORDER BY id", {})]


async def outcome(awaitable: Awaitable[object]) -> object:
    """Return what it returns, or the class of its error."""
    try:
        return await awaitable
    except StateError as error:
        return type(error)


class Gate:
    """Lets requests through to a server, and holds writes back on demand.

    Attributes:
        has_write: Set while a write is held back.
        most: How many writes were in flight at most.
    """

    def __init__(self, url: str) -> None:
        self._forward = forward_to(url)
        self._is_open = asyncio.Event()
        self._in_flight = 0
        self.has_write = asyncio.Event()
        self.most = 0

    async def __call__(self, received: Received) -> web.StreamResponse | None:
        if not received.writes:
            return await self._forward(received)
        self._in_flight += 1
        self.most = max(self.most, self._in_flight)
        self.has_write.set()
        try:
            await self._is_open.wait()
            return await self._forward(received)
        finally:
            self._in_flight -= 1

    def open(self) -> None:
        self._is_open.set()

    def close(self) -> None:
        self._is_open.clear()
        self.has_write.clear()


async def test_a_batch_returns_the_rows_of_each_statement(driver: LibsqlDriver) -> None:
    rows = await driver.batch([*insert("a", "b"), ("SELECT count(*) FROM things", {})])

    assert rows == [[("a",)], [("b",)], [(2,)]]


async def test_no_statements_do_nothing(driver: LibsqlDriver) -> None:
    assert await driver.batch([]) == []


async def test_a_batch_that_fails_writes_nothing(driver: LibsqlDriver) -> None:
    await driver.batch(insert("a"))
    with pytest.raises(StateConflictError):
        await driver.batch(insert("b", "a", "c"))

    assert await stored(driver) == ["a"]


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (insert("bad 1", "taken"), StateConflictError),
        ([*insert("bad 1"), ("SELEC 1", {})], StateError),
        ([*insert("bad 1"), ("SELECT :missing", {})], StateError),
        ([*insert("bad 1"), ("SELECT :x, :x, :x", {"x": "x" * 4_000_000})], StateError),
        ([("SELEC 1", {})], StateError),
        ([*insert("bad 1"), ("ROLLBACK", {})], StateError),
    ],
    ids=["constraint", "syntax", "argument", "too large", "syntax alone", "rollback"],
)
async def test_in_one_request_a_bad_batch_fails_alone(
    sqld: SqldServer, bad: list[Statement], error: type[StateError]
) -> None:
    gate = Gate(sqld.url)
    async with Loopback(gate) as proxy, driving(proxy.url) as driver:
        gate.open()
        await make_table(driver)
        await driver.batch(insert("taken"))
        gate.close()
        before = len(proxy.received)
        first = asyncio.create_task(driver.batch(insert("first")))
        await gate.has_write.wait()
        waiting = [
            asyncio.create_task(outcome(driver.batch(each)))
            for each in (insert("a", "b"), bad, insert("c"), insert("taken"), insert("d"))
        ]
        await asyncio.sleep(0)
        gate.open()
        await first

        assert await asyncio.gather(*waiting) == [
            [[("a",)], [("b",)]],
            error,
            [[("c",)]],
            StateConflictError,
            [[("d",)]],
        ]
        assert await stored(driver) == ["taken", "first", "a", "b", "c", "d"]
        assert len(proxy.received) - before <= 5


async def test_what_waits_shares_one_request_of_64_batches_at_most(sqld: SqldServer) -> None:
    gate = Gate(sqld.url)
    async with Loopback(gate) as proxy, driving(proxy.url) as driver:
        gate.open()
        await make_table(driver)
        gate.close()
        before = len(proxy.received)
        async with asyncio.TaskGroup() as tasks:
            for number in range(100):
                tasks.create_task(driver.batch(insert(f"{number} a", f"{number} b")))
            await gate.has_write.wait()
            gate.open()

        batches = [each.body.count(b"SAVEPOINT") for each in proxy.received[before:]]
        assert (batches, gate.most) == ([64, 36], 1)
        assert len(await stored(driver)) == 200


async def test_a_request_has_256_kib_at_most_unless_one_batch_has_more(sqld: SqldServer) -> None:
    gate = Gate(sqld.url)
    async with Loopback(gate) as proxy, driving(proxy.url) as driver:
        gate.open()
        await make_table(driver)
        gate.close()
        before = len(proxy.received)
        async with asyncio.TaskGroup() as tasks:
            for size in (100, 100, 100, 300, 1, 1):
                text = f"{len(proxy.received)}{id(tasks)}{size}" + "x" * size * 1000
                tasks.create_task(outcome(driver.batch(insert(text, text + "y"))))
            await gate.has_write.wait()
            gate.open()

        sizes = [len(each.body) // 100_000 for each in proxy.received[before:]]
        assert sizes == [2, 2, 2, 6, 0]


async def test_reads_do_not_wait_for_a_write_and_at_most_eight_are_in_flight(
    sqld: SqldServer,
) -> None:
    gate = Gate(sqld.url)
    in_flight, most, has_eight = 0, 0, asyncio.Event()

    async def answer(received: Received) -> web.StreamResponse | None:
        nonlocal in_flight, most
        if b"slow" not in received.body:
            return await gate(received)
        in_flight += 1
        most = max(most, in_flight)
        if in_flight == 8:
            has_eight.set()
        await has_eight.wait()
        response = await gate(received)
        in_flight -= 1
        return response

    async with Loopback(answer) as proxy, driving(proxy.url) as driver:
        gate.open()
        await make_table(driver)
        gate.close()
        write = asyncio.create_task(driver.batch(insert("a", "b")))
        await gate.has_write.wait()
        rows = await asyncio.gather(*(driver.execute("SELECT 'slow'", {}) for _ in range(32)))
        gate.open()
        await write

    assert (rows, most) == ([[("slow",)]] * 32, 8)


async def test_reads_of_one_batch_see_one_view(driver: LibsqlDriver) -> None:
    select: Statement = ("SELECT count(*) FROM things", {})
    done = asyncio.Event()

    async def write() -> None:
        for number in range(100):
            await driver.batch(insert(f"{number}"))
        done.set()

    writing = asyncio.create_task(write())
    while not done.is_set():
        [first], *others = await driver.batch([select] * 5)
        assert others == [[first]] * 4
    await writing


async def test_cancelling_takes_back_what_waits_but_not_what_was_sent(sqld: SqldServer) -> None:
    gate = Gate(sqld.url)
    async with Loopback(gate) as proxy, driving(proxy.url) as driver:
        gate.open()
        await make_table(driver)
        gate.close()
        sent = asyncio.create_task(driver.batch(insert("sent", "too")))
        await gate.has_write.wait()
        waiting = asyncio.create_task(driver.batch(insert("waits", "only")))
        await asyncio.sleep(0)
        for task in (sent, waiting):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        gate.open()
        await driver.batch(insert("later"))

        assert await stored(driver) == ["sent", "too", "later"]


async def test_closing_waits_for_what_was_sent_also_when_nobody_waits_for_it(
    sqld: SqldServer,
) -> None:
    gate = Gate(sqld.url)
    async with Loopback(gate) as proxy, driving(sqld.url) as reading:
        await make_table(reading)
        driver = make_driver(proxy.url)
        task = asyncio.create_task(driver.batch(insert("sent", "too")))
        await gate.has_write.wait()
        task.cancel()
        closing = asyncio.create_task(driver.aclose())
        gate.open()
        await closing

        assert await stored(reading) == ["sent", "too"]


async def test_after_closing_it_connects_again(driver: LibsqlDriver) -> None:
    await driver.aclose()
    await driver.aclose()

    assert await driver.batch(insert("a")) == [[("a",)]]


def test_several_loops_share_one_write_at_a_time(sqld: SqldServer) -> None:
    driver = make_driver(sqld.url)
    asyncio.run(make_table(driver))
    numbers = count()
    most, in_flight = 0, 0
    write = driver._client.write

    async def counted(batches: Any, /) -> Any:
        nonlocal most, in_flight
        in_flight += 1
        most = max(most, in_flight)
        try:
            return await write(batches)
        finally:
            in_flight -= 1

    driver._client.write = counted  # type: ignore[method-assign]

    async def work() -> None:
        async def task() -> None:
            for _ in range(10):
                await driver.batch(insert(f"{next(numbers)}"))

        await asyncio.gather(*(task() for _ in range(8)))
        # A loop that ends leaves what it sends for the others without an answer.
        await asyncio.to_thread(all_done.wait)

    all_done = threading.Barrier(4)
    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == 1
    assert len(asyncio.run(stored(driver))) == 320


def test_another_loop_goes_on_when_the_one_that_writes_ends(sqld: SqldServer) -> None:
    driver = make_driver(sqld.url)
    asyncio.run(make_table(driver))
    is_sending, has_waiting = threading.Event(), threading.Event()
    write = driver._client.write

    async def hanging(batches: Any, /) -> Any:
        if not is_sending.is_set():
            is_sending.set()
            await asyncio.Event().wait()
        return await write(batches)

    driver._client.write = hanging  # type: ignore[method-assign]

    async def lead() -> None:
        task = asyncio.create_task(driver.batch(insert("never sent")))
        await asyncio.to_thread(has_waiting.wait)
        task.cancel()  # and the loop ends, with its task that sends

    async def follow() -> object:
        await asyncio.to_thread(is_sending.wait)
        task = asyncio.create_task(driver.batch(insert("waits")))
        await asyncio.sleep(0)
        has_waiting.set()
        return await task

    leading = threading.Thread(target=asyncio.run, args=(lead(),))
    leading.start()
    assert asyncio.run(follow()) == [[("waits",)]]
    leading.join()
    assert asyncio.run(stored(driver)) == ["waits"]


def test_another_loop_goes_on_when_the_one_that_writes_stands_still(sqld: SqldServer) -> None:
    driver = make_driver(sqld.url, limits=Limits(request=0.2))
    asyncio.run(make_table(driver))
    write = driver._client.write
    is_first = True

    async def hanging(batches: Any, /) -> Any:
        nonlocal is_first
        if is_first:
            is_first = False
            loop.stop()
            await asyncio.Event().wait()
        return await write(batches)

    driver._client.write = hanging  # type: ignore[method-assign]
    loop = asyncio.new_event_loop()
    left = loop.create_task(driver.batch(insert("never sent")))
    loop.run_forever()

    assert asyncio.run(driver.batch(insert("sent"))) == [[("sent",)]]
    assert asyncio.run(stored(driver)) == ["sent"]
    left.cancel()
    loop.run_until_complete(asyncio.wait([left]))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def test_a_loop_that_was_closed_with_connections_open_is_forgotten(sqld: SqldServer) -> None:
    driver = make_driver(sqld.url)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(driver.execute("SELECT 1", {}))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    reference = weakref.ref(loop)
    del loop
    gc.collect()

    assert reference() is None
    assert asyncio.run(driver.execute("SELECT 1", {})) == [(1,)]
