"""Faults of a real libSQL server: killed, paused, away, stuck; and of what is between."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest

from tests.providers.libsql_helpers import Loopback, Relay, driving, forward_to
from tests.providers.sqld_server import SqldServer, SqldServers, free_port
from vitehub_chat.errors import StateConflictError, StateUnavailableError
from vitehub_chat.state.providers.libsql.circuit import Circuit
from vitehub_chat.state.providers.libsql.driver import LibsqlDriver
from vitehub_chat.state.providers.libsql.failures import AttemptError, unavailable
from vitehub_chat.state.providers.libsql.limits import Limits

pytestmark = pytest.mark.service

CREATE = "CREATE TABLE IF NOT EXISTS things (id INTEGER PRIMARY KEY, value TEXT UNIQUE)"
INSERT = "INSERT INTO things (value) VALUES (:value)"
SELECT = "SELECT value FROM things ORDER BY id"
PATIENT = Limits(retry=30.0)


@pytest.fixture
async def driver(own_sqld: SqldServer) -> AsyncIterator[LibsqlDriver]:
    async with driving(own_sqld.url, limits=PATIENT) as driver:
        await driver.execute(CREATE, {})
        yield driver


async def stored(driver: LibsqlDriver) -> list[object]:
    return [value for (value,) in await driver.execute(SELECT, {})]


async def test_a_server_that_is_away_is_unavailable() -> None:
    limits = Limits(retry=0.2)
    async with driving(f"http://127.0.0.1:{free_port()}", limits=limits) as driver:
        for sql in ("SELECT 1", CREATE):
            with pytest.raises(StateUnavailableError) as caught:
                await driver.execute(sql, {})
            assert (caught.value.outcome, caught.value.retryable) == ("not_written", True)
            assert caught.value.hint == "check that state.url names one that runs"


async def test_a_server_that_comes_in_time_is_waited_for(
    own_sqld: SqldServer, driver: LibsqlDriver
) -> None:
    own_sqld.kill()
    writing = asyncio.create_task(driver.execute(INSERT, {"value": "a"}))
    reading = asyncio.create_task(driver.execute("SELECT 1", {}))
    await asyncio.sleep(0)
    await asyncio.to_thread(own_sqld.start)
    await asyncio.gather(writing, reading)

    assert await stored(driver) == ["a"]


async def test_a_server_that_was_restarted_between_two_writes_takes_the_second(
    own_sqld: SqldServer, driver: LibsqlDriver
) -> None:
    await driver.execute(INSERT, {"value": "a"})
    await asyncio.to_thread(own_sqld.restart)
    await driver.execute(INSERT, {"value": "b"}, idempotent=True)

    assert await stored(driver) == ["a", "b"]


async def test_a_server_killed_again_and_again_loses_and_doubles_nothing(
    own_sqld: SqldServer, driver: LibsqlDriver
) -> None:
    acknowledged: list[str] = []
    done: asyncio.Queue[str] = asyncio.Queue()
    is_over = asyncio.Event()

    async def work(name: str) -> None:
        number = 0
        while not is_over.is_set():
            values = [f"{name}-{number}-{part}" for part in "ab"]
            # Written before without an answer is as good.
            with suppress(StateConflictError):
                await driver.batch([(INSERT, {"value": each}) for each in values], idempotent=True)
            acknowledged.extend(values)
            done.put_nowait(name)
            number += 1

    async with asyncio.TaskGroup() as tasks:
        for number in range(8):
            tasks.create_task(work(f"{number}"))
        for _ in range(6):
            for _ in range(30):
                await done.get()
            await asyncio.to_thread(own_sqld.restart)
        is_over.set()

    found = await stored(driver)
    assert sorted(map(str, found)) == sorted(acknowledged)


async def test_a_paused_server_is_an_unknown_outcome_and_works_again_afterwards(
    own_sqld: SqldServer,
) -> None:
    limits = Limits(request=0.5, retry=0.0)
    async with driving(own_sqld.url, limits=limits) as driver:
        await driver.execute(CREATE, {})
        with own_sqld.paused():
            with pytest.raises(StateUnavailableError) as writing:
                await driver.execute(INSERT, {"value": "a"})
            with pytest.raises(StateUnavailableError) as reading:
                await driver.execute("SELECT 1", {})
        async with driving(own_sqld.url, limits=PATIENT) as later:
            await later.execute(INSERT, {"value": "b"})

        assert (writing.value.outcome, reading.value.outcome) == ("unknown", "not_written")
        assert await stored(later) in (["a", "b"], ["b"])


async def test_a_deadline_of_the_caller_ends_the_repeats(own_sqld: SqldServer) -> None:
    async with driving(own_sqld.url, limits=Limits(request=0.1, retry=600.0)) as driver:
        with own_sqld.paused(), pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await driver.execute("SELECT 1", {})


async def test_a_deadline_of_the_caller_that_passes_with_that_of_a_request_ends_the_repeats(
    own_sqld: SqldServer,
) -> None:
    # A busy loop finds both over at once; neither may take the other's place.
    async with driving(own_sqld.url, limits=Limits(request=0.1, retry=600.0)) as driver:
        asyncio.get_running_loop().call_later(0.05, time.sleep, 0.1)
        with own_sqld.paused(), pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await driver.execute("SELECT 1", {})


async def test_an_idle_connection_that_was_dropped_is_replaced(own_sqld: SqldServer) -> None:
    async with Relay(own_sqld.port) as relay, driving(relay.url) as driver:
        await driver.execute(CREATE, {})
        for value in ("a", "b", "c"):
            await relay.drop()
            await driver.execute("SELECT 1", {})
            await driver.execute(INSERT, {"value": value})

        assert await stored(driver) == ["a", "b", "c"]
        assert relay.accepted == 4


@asynccontextmanager
async def somebody_writing(server: SqldServer) -> AsyncIterator[None]:
    """Let a stream of somebody else hold the write lock; the server grants it for five seconds."""
    url = f"{server.url}/v3/pipeline"

    async def send(baton: str | None, sql: str) -> str | None:
        part = {"type": "execute", "stmt": {"sql": sql}}
        async with session.post(url, json={"baton": baton, "requests": [part]}) as response:
            found: str | None = (await response.json())["baton"]
            return found

    async with aiohttp.ClientSession() as session:
        baton = await send(None, "BEGIN IMMEDIATE")
        yield
        await send(baton, "ROLLBACK")


async def test_writes_that_are_stuck_are_held_back_until_a_probe_goes_through(
    own_sqld: SqldServer,
) -> None:
    now = 0.0
    async with (
        Loopback(forward_to(own_sqld.url)) as proxy,
        driving(proxy.url, limits=Limits(request=1.0, retry=0.0)) as driver,
    ):
        await driver.execute(CREATE, {})
        driver._lane().circuit = Circuit(lambda: now)
        async with somebody_writing(own_sqld):
            with pytest.raises(StateUnavailableError) as stuck:
                await driver.execute(INSERT, {"value": "a"})
            sent = len(proxy.received)
            with pytest.raises(StateUnavailableError, match="takes no writes") as held_back:
                await driver.execute(INSERT, {"value": "b"})
            assert len(proxy.received) == sent
            assert await driver.execute("SELECT 1", {}) == [(1,)]
            now = 1.0
            with pytest.raises(StateUnavailableError, match="takes no writes"):
                await driver.execute(INSERT, {"value": "c"})
        now = 3.0
        await driver.execute(INSERT, {"value": "d"})

        assert (stuck.value.outcome, held_back.value.outcome) == ("unknown", "not_written")
        assert (await stored(driver))[-1] == "d"
        assert not {"b", "c"} & set(await stored(driver))


async def test_each_probe_that_fails_doubles_the_pause_up_to_thirty_seconds() -> None:
    now = 0.0
    circuit = Circuit(lambda: now)
    probed: list[float] = []

    async def probe() -> None:
        probed.append(now)
        raise unavailable("no answer", "idempotent", timed_out=True)

    circuit.open()
    for tenths in range(1000):
        now = tenths / 10
        with pytest.raises(AttemptError):
            await circuit.check(probe)

    assert probed == [1.0, 3.0, 7.0, 15.0, 31.0, 61.0, 91.0]


async def test_a_server_that_is_away_while_probed_is_not_stuck() -> None:
    now = 0.0
    circuit = Circuit(lambda: now)

    async def probe() -> None:
        raise unavailable("away", "always")

    circuit.open()
    now = 1.0
    await circuit.check(probe)

    assert not circuit.is_open


async def test_reads_after_writes_through_a_replica_are_not_stale(
    sqld_servers: SqldServers, own_sqld: SqldServer
) -> None:
    replica = sqld_servers.start(primary=own_sqld)
    async with driving(replica.url, limits=PATIENT) as through:
        await through.execute(CREATE, {})
        for number in range(60):
            await through.execute(INSERT, {"value": f"{number}"})
            assert await through.execute("SELECT count(*) FROM things", {}) == [(number + 1,)]
    replica.kill()


@pytest.mark.slow
async def test_64_tasks_for_ten_seconds_never_get_stuck(
    driver: LibsqlDriver,
) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + 10
    slowest = 0.0
    acknowledged = 0

    async def work(name: int) -> None:
        nonlocal slowest, acknowledged
        number = 0
        while loop.time() < end:
            begun = loop.time()
            await driver.batch([(INSERT, {"value": f"{name} {number}"}), (SELECT + " LIMIT 1", {})])
            slowest = max(slowest, loop.time() - begun)
            acknowledged += 1
            number += 1

    await asyncio.gather(*(work(name) for name in range(64)))

    assert len(await stored(driver)) == acknowledged
    assert slowest < 5


LEFT_OPEN = """
import asyncio, sys
from vitehub_chat.state.providers.libsql import open_libsql

async def main():
    state = open_libsql(sys.argv[1])
    await state.__aenter__()
    asyncio.ensure_future(state.run_write(lambda tables: None))
    await asyncio.sleep(0)

asyncio.run(main())
"""

FORK = """
import asyncio, os, sys, warnings
from vitehub_chat.state.providers.libsql.address import parse_address
from vitehub_chat.state.providers.libsql.circuit import Circuit
from vitehub_chat.state.providers.libsql.driver import LibsqlDriver
from vitehub_chat.state.providers.libsql.tokens import TokenSource

warnings.simplefilter("ignore", DeprecationWarning)
driver = LibsqlDriver(parse_address(sys.argv[1]), tokens=TokenSource(None))
INSERT = "INSERT INTO things (value) VALUES (:value)"

async def write(name):
    await asyncio.gather(
        *(driver.batch([(INSERT, {"value": f"{name} {each}"})] ) for each in range(20))
    )

loop = asyncio.new_event_loop()
loop.run_until_complete(write("before"))
pid = os.fork()
if pid == 0:
    asyncio.run(write("child"))
    sys.exit(0)
loop.run_until_complete(write("parent"))
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
loop.run_until_complete(write("parent again"))
loop.run_until_complete(driver.aclose())
loop.close()
sys.exit(status)
"""


def run(script: str, url: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_state_left_open_does_not_hang_the_exit_and_says_nothing(sqld: SqldServer) -> None:
    assert run(LEFT_OPEN, sqld.url) == (0, "")


async def test_a_fork_writes_over_connections_of_its_own(
    own_sqld: SqldServer, driver: LibsqlDriver
) -> None:
    assert await asyncio.to_thread(run, FORK, own_sqld.url) == (0, "")

    names = ("before", "child", "parent", "parent again")
    wanted = [f"{name} {each}" for name in names for each in range(20)]
    assert sorted(map(str, await stored(driver))) == sorted(wanted)
