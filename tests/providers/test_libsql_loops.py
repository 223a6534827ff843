"""Several event loops that write to one libSQL server: one at a time, and what if one ends."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from tests.providers.libsql_helpers import make_driver
from tests.providers.sqld_server import SqldServer
from vitehub_chat.state.providers.libsql.driver import LibsqlDriver
from vitehub_chat.state.providers.libsql.limits import Limits
from vitehub_chat.state.sql.driver import Statement

pytestmark = pytest.mark.service

INSERT = "INSERT INTO things (value) VALUES (:value) RETURNING value"


async def make_table(driver: LibsqlDriver) -> None:
    await driver.batch(
        [
            ("DROP TABLE IF EXISTS things", {}),
            ("CREATE TABLE things (id INTEGER PRIMARY KEY, value TEXT UNIQUE) STRICT", {}),
        ]
    )


def insert(value: str) -> list[Statement]:
    return [(INSERT, {"value": value})]


async def stored(driver: LibsqlDriver) -> list[Any]:
    return [value for (value,) in await driver.execute("SELECT value FROM things ORDER BY id", {})]


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

    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == 1
    assert len(asyncio.run(stored(driver))) == 320


def test_a_request_has_the_writes_of_one_loop_and_loops_take_turns(sqld: SqldServer) -> None:
    driver = make_driver(sqld.url)
    asyncio.run(make_table(driver))
    write = driver._client.write
    is_sending, b_waits, a_waits, may_send = (threading.Event() for _ in range(4))
    sent: list[tuple[int, list[str]]] = []

    async def noted(batches: Any, /) -> Any:
        values = [json.loads(each)["named_args"][0]["value"]["value"] for (each,) in batches]
        sent.append((threading.get_ident(), values))
        if not is_sending.is_set():
            is_sending.set()
            await asyncio.to_thread(may_send.wait)
        return await write(batches)

    driver._client.write = noted  # type: ignore[method-assign]

    async def start(value: str) -> asyncio.Task[Any]:
        task = asyncio.create_task(driver.batch(insert(value)))
        await asyncio.sleep(0)
        return task

    async def work(*steps: tuple[threading.Event, str, threading.Event]) -> int:
        tasks = []
        for before, value, after in steps:
            await asyncio.to_thread(before.wait)
            tasks.append(await start(value))
            after.set()
        await asyncio.gather(*tasks)
        return threading.get_ident()

    now = threading.Event()
    now.set()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(asyncio.run, work((now, "a1", now), (b_waits, "a2", a_waits)))
        second = threads.submit(
            asyncio.run, work((is_sending, "b1", b_waits), (a_waits, "b2", may_send))
        )
        a, b = first.result(), second.result()

    assert sent == [(a, ["a1"]), (b, ["b1", "b2"]), (a, ["a2"])]


def test_loops_that_end_while_they_write_take_no_write_of_another_with_them(
    sqld: SqldServer,
) -> None:
    driver = make_driver(sqld.url)
    asyncio.run(make_table(driver))
    is_over, numbers = threading.Event(), count()

    async def end_at_once() -> None:
        _ = [asyncio.create_task(driver.batch(insert(f"x {next(numbers)}"))) for _ in range(3)]
        await driver.execute("SELECT 1", {})

    def end_again_and_again() -> None:
        while not is_over.is_set():
            asyncio.run(end_at_once())

    async def go_on() -> None:
        for number in range(40):
            values = [insert(f"{number} {each}") for each in range(4)]
            await asyncio.gather(*map(driver.batch, values))

    thread = threading.Thread(target=end_again_and_again)
    thread.start()
    try:
        asyncio.run(go_on())
    finally:
        is_over.set()
        thread.join()

    wanted = {f"{number} {each}" for number in range(40) for each in range(4)}
    found = asyncio.run(stored(driver))
    assert wanted <= set(found)
    assert len(found) == len(set(found))


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
