"""Writing to a real libSQL server: all or nothing, one request at a time, many batches in each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
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
        ([*insert("bad 1"), ("SELECT :x || :x", {"x": "x" * 3_000_000})], StateError),
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
