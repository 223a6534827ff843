"""Opening a state in PostgreSQL: what it gets, and what is refused."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.providers.postgres_server import (
    ENCODED,
    PASSWORD,
    CountingDriver,
    Place,
    PostgresServer,
    free_port,
    until,
)
from tests.providers.sqlite_helpers import append, start, stored
from vitehub_chat.errors import (
    ConfigError,
    SchemaVersionError,
    StateClosedError,
    StateError,
    StateUnavailableError,
)
from vitehub_chat.model.clock import SystemClock
from vitehub_chat.state.providers.postgres.pools import MOST
from vitehub_chat.state.sql.server_clock import MEASURED_EVERY_SECONDS, ServerClock
from vitehub_chat.state.sql.texts import load_texts
from vitehub_chat.testing.clock import FakeClock

pytestmark = pytest.mark.service

OPEN_MANY = """
import asyncio, sys
from vitehub_chat.state.providers.postgres import open_postgres

async def use(url, prefix):
    async with open_postgres(url, table_prefix=prefix) as state:
        await state.run_read(lambda tx: tx.secret)

async def main(url, prefix):
    await asyncio.gather(*(use(url, prefix) for _ in range(10)))

print("ready", flush=True)
for line in sys.stdin:
    asyncio.run(main(sys.argv[1], line.strip()))
    print("done", flush=True)
"""

RELATIONS = (
    "SELECT relname FROM pg_class WHERE relname LIKE replace('$', '_', '~_') || '%' ESCAPE '~'"
)
QUICK = {"busy_timeout_ms": 100}


class Late(SystemClock):
    """The clock of a machine that is late, in a whole lot of time."""

    def now(self) -> Any:
        return super().now() - timedelta(hours=5)


async def test_a_store_keeps_its_secret(place: Place) -> None:
    seen = []
    for _ in range(2):
        async with place.open() as state:
            seen.append(await state.run_read(lambda tx: tx.secret))
    async with Place(place.server).open() as other:
        other_secret = await other.run_read(lambda tx: tx.secret)
    assert seen[0] == seen[1] != other_secret
    assert len(other_secret) == 32


async def test_two_prefixes_are_two_stores_in_one_database(place: Place) -> None:
    async with place.open() as one, Place(place.server).open() as two:
        await append(one, "m1")
        assert (await stored(one), await stored(two)) == ([(1, "m1")], [])


async def test_p20_ten_opens_each_of_four_processes_migrate_once(place: Place) -> None:
    processes = [start(OPEN_MANY, place.server.url) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for each in (place, Place(place.server)):
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(f"{each.prefix}\n")
            process.stdin.flush()
        answers = [process.stdout.readline() for process in processes if process.stdout]
        assert answers == ["done\n"] * 4
        assert each.query("SELECT version FROM $schema") == [(1,), (2,)]
        assert each.query("SELECT version FROM $requests_schema") == [(1,)]
        assert each.query("SELECT count(*) FROM $meta") == [(1,)]
    for process in processes:
        process.communicate()
        assert process.returncode == 0


async def test_a_newer_schema_is_refused_and_nothing_written(place: Place) -> None:
    async with place.open(transcripts={"retention": "1h"}) as state:
        await append(state, "m1")
    place.query("INSERT INTO $schema VALUES (99, 0, 'of the future')")
    before = place.query("SELECT xmin, * FROM $rows")
    with pytest.raises(SchemaVersionError, match="99"):
        await place.open(transcripts={"retention": "forever"}).__aenter__()
    assert place.query("SELECT xmin, * FROM $rows") == before


async def test_a_schema_of_the_same_number_with_another_text_is_refused(place: Place) -> None:
    async with place.open():
        pass
    place.query("UPDATE $schema SET checksum = 'of another branch'")
    with pytest.raises(SchemaVersionError, match="version 1"):
        await place.open().__aenter__()


async def test_without_migrate_a_store_without_schema_is_refused(place: Place) -> None:
    with pytest.raises(ConfigError, match=r"state\.migrate"):
        await place.open(migrate=False).__aenter__()
    assert place.query(RELATIONS) == []
    async with place.open():
        pass
    async with place.open(migrate=False) as state:
        assert await append(state, "m1") == [1]


async def test_dropping_leaves_nothing_of_the_prefix_and_everything_of_others(
    place: Place,
) -> None:
    other = Place(place.server, f"{place.prefix}more_")
    async with place.open() as state, other.open() as beside:
        await append(state, "m1")
        await append(beside, "m1")
        await state.drop()
        with pytest.raises(StateClosedError):
            await stored(state)
        assert {name.removeprefix(place.prefix)[:5] for (name,) in place.query(RELATIONS)} == {
            "more_"
        }
        assert await stored(beside) == [(1, "m1")]
    async with place.open() as state:
        assert await stored(state) == []


async def test_a_state_whose_tables_were_dropped_says_so(place: Place) -> None:
    async with place.open() as state:
        async with place.open() as other:
            await other.drop()
        with pytest.raises(StateError, match="gone"):
            await append(state, "m1")


async def test_p01_a_state_is_used_between_open_and_close_only(place: Place) -> None:
    state = place.open()
    with pytest.raises(StateClosedError):
        await append(state, "m1")
    async with state:
        await append(state, "m1")
    await state.aclose()
    with pytest.raises(StateClosedError):
        await append(state, "m2")
    with pytest.raises(StateClosedError):
        await stored(state)
    async with state:
        assert await stored(state) == [(1, "m1")]


async def test_concurrent_opens_of_one_object_share_one_attempt(place: Place) -> None:
    state = place.open()
    await asyncio.gather(*(state.__aenter__() for _ in range(10)))
    assert await append(state, "m1") == [1]
    await state.aclose()


async def test_an_open_that_is_cancelled_leaves_the_state_closed(place: Place) -> None:
    state = place.open()
    opening = asyncio.ensure_future(state.__aenter__())
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    with pytest.raises(StateClosedError):
        await append(state, "m1")
    async with state:
        assert await append(state, "m1") == [1]


async def test_closing_waits_for_what_was_asked_before(place: Place) -> None:
    state = await place.open().__aenter__()
    tasks = [asyncio.ensure_future(append(state, f"m{number}")) for number in range(30)]
    await asyncio.sleep(0)
    await state.aclose()
    seqs = await asyncio.gather(*tasks)
    assert sorted(seqs) == [[number + 1] for number in range(30)]


async def test_closing_ends_every_connection(place: Place) -> None:
    name = place.prefix.strip("_")
    state = place.open(url=f"{place.server.url}?application_name={name}")
    sql = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'"  # noqa: S608
    async with state:
        await asyncio.gather(*(append(state, f"m{number}") for number in range(10)))
        await stored(state)
        [(count,)] = place.query(sql)
        assert 1 <= count <= MOST
    await until(place, sql, 0)  # the server notices a little later


async def test_p21_a_server_that_is_away_is_no_server_that_refuses(place: Place) -> None:
    url = f"postgresql://ann:secret@127.0.0.1:{free_port()}/chat"
    state = place.open(url=url, **QUICK)
    with pytest.raises(StateUnavailableError) as raised:
        await state.__aenter__()
    assert (raised.value.outcome, raised.value.retryable) == ("not_written", True)
    assert isinstance(raised.value.__cause__, psycopg.OperationalError)
    with pytest.raises(StateClosedError):
        await stored(state)


async def test_a_failed_open_leaves_nothing_open_and_may_be_repeated(place: Place) -> None:
    state = place.open(**QUICK)
    place.server.stop()
    try:
        results = await asyncio.gather(
            *(state.__aenter__() for _ in range(3)), return_exceptions=True
        )
    finally:
        place.server.start()
    assert [type(each) for each in results] == [StateUnavailableError] * 3
    async with state:
        assert await append(state, "m1") == [1]


@pytest.mark.parametrize("password", ["wrong", None])
async def test_p21_bad_credentials_are_an_error_of_the_configuration(
    place: Place, password: str | None
) -> None:
    with pytest.raises(ConfigError) as raised:
        await place.open(url=place.server.guarded_url(password)).__aenter__()
    assert raised.value.code == "unauthorized"
    assert "wrong" not in f"{raised.value} {raised.value.__cause__}"


async def test_a_password_opens_and_so_does_a_token(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def give_later() -> str:
        await asyncio.sleep(0)
        return PASSWORD

    monkeypatch.setenv("STATE_TOKEN", PASSWORD)
    url = place.server.guarded_url(None)
    ways: list[dict[str, Any]] = [
        {"url": place.server.guarded_url(ENCODED)},
        {"url": url, "auth_token": PASSWORD},
        {"url": url, "auth_token": lambda: PASSWORD},
        {"url": url, "auth_token": give_later},
        {"url": url, "auth_token_env": "STATE_TOKEN"},
    ]
    for number, way in enumerate(ways, 1):
        async with place.open(**way) as state:
            assert await append(state, f"m{number}") == [number]


async def test_a_variable_of_the_token_that_is_not_set_is_named(place: Place) -> None:
    state = place.open(url=place.server.guarded_url(None), auth_token_env="NOT_SET")  # noqa: S106
    with pytest.raises(ConfigError, match="'NOT_SET'"):
        await state.__aenter__()


@pytest.mark.parametrize("tail", ["x", "?sslmode=bogus", "?connect_timeout=soon"])
async def test_a_url_that_cannot_work_is_no_server_that_is_away(place: Place, tail: str) -> None:
    with pytest.raises(ConfigError) as raised:
        await place.open(url=place.server.url + tail).__aenter__()
    assert (raised.value.path, raised.value.code) == ("state.url", "config_error")


async def test_a_user_without_privileges_is_told(place: Place) -> None:
    async with place.open():
        pass
    with pytest.raises(ConfigError) as raised:
        await place.open(url=place.server.guarded_url(ENCODED)).__aenter__()
    assert raised.value.code == "unauthorized"
    assert "permission denied for table" in str(raised.value.__cause__)


async def test_a_database_that_cannot_store_every_character_is_refused(place: Place) -> None:
    name = f"{place.prefix}latin1"
    place.query(f"CREATE DATABASE {name} ENCODING latin1 TEMPLATE template0")
    with pytest.raises(ConfigError, match="'LATIN1'"):
        await place.open(url=f"{place.server.url.rpartition('/')[0]}/{name}").__aenter__()


async def test_p25_the_clock_of_the_machine_is_moved_to_that_of_the_server(place: Place) -> None:
    late = Late()
    state = place.open(clock=late)
    assert state.clock.now() - SystemClock().now() < timedelta(hours=-4)
    async with state:
        for number in range(1, 6):
            assert await append(state, f"m{number}") == [number]
        assert abs(state.clock.now() - SystemClock().now()) < timedelta(minutes=1)


async def test_the_server_is_asked_for_its_time_every_five_minutes(
    postgres: PostgresServer,
) -> None:
    at = [1000.0]
    driver = CountingDriver(postgres)
    texts = await asyncio.to_thread(load_texts, "postgres", "p_")
    clock = ServerClock(FakeClock(), elapsed=lambda: at[0])
    await clock.measure(driver, texts)
    asked = []
    for seconds in (0, MEASURED_EVERY_SECONDS - 1, 1, 1, MEASURED_EVERY_SECONDS):
        at[0] += seconds
        asked.append(await driver.count(clock.measure_if_due(driver, texts)))
    await driver.aclose()
    assert asked == [0, 0, 1, 0, 1]
    assert abs(clock.now() - SystemClock().now()) < timedelta(minutes=1)
