"""What goes wrong: lost connections, and a server that refuses, is busy or away."""

from __future__ import annotations

import asyncio
import itertools

import psycopg
import pytest

from tests.providers.postgres_server import (
    CountingDriver,
    Place,
    PostgresServer,
    conversations,
    free_port,
    holding,
    until,
    writing,
)
from tests.providers.sqlite_helpers import append, stored
from vitehub_chat.errors import ConfigError, StateError, StateUnavailableError
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.postgres.driver import PostgresDriver
from vitehub_chat.state.providers.postgres.target import parse_target
from vitehub_chat.state.sql.retrying import Retrying

pytestmark = pytest.mark.service

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
BAD = """
INSERT INTO $conversations (key, encoded, encoded_hash, last_seq, generation)
VALUES (1, 'bad', '', 0, 0)
"""
BLOCKED = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"
END_BAD = """
INSERT INTO $conversations (key, encoded, encoded_hash, last_seq, generation)
VALUES (1, 'bad', '', 0, 0)
"""
BLOCKED = "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE NOT granted"
END_BLOCKED = "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE NOT granted"
LOCKED = "LOCK TABLE $scopes IN EXCLUSIVE MODE"


class EnoughPauses(Exception):  # noqa: N818  it ends a test
    """There were as many as a test wants."""


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


async def test_a_connection_lost_before_the_commit_is_made_again(
    place: Place, postgres: PostgresServer
) -> None:
    driver = CountingDriver(postgres)
    async with place.open_over(driver) as state:
        driver.requests.clear()
        with holding(place, LOCKED):
            write = asyncio.ensure_future(state.run_write(writing("a")))
            await until(place, BLOCKED, 1)
            await asyncio.to_thread(place.query, END_BLOCKED)
        await write
    # The driver itself knows that nothing was written, so the state is not asked.
    assert [words[0] for words in driver.requests].count("CALL") == 1
    assert conversations(place) == ["a"]


async def test_a_commit_without_an_answer_is_not_repeated_as_it_is(
    place: Place, postgres: PostgresServer
) -> None:
    driver = CountingDriver(postgres)
    async with place.open_over(driver) as state:
        place.query(DYING)
        with pytest.raises(StateUnavailableError) as raised:
            await driver.execute(BAD.replace("$", place.prefix), {})
        assert (raised.value.outcome, raised.value.retryable) == ("unknown", True)
        assert isinstance(raised.value.__cause__, psycopg.OperationalError)
        driver.requests.clear()
        with pytest.raises(StateUnavailableError) as raised:
            await state.run_write(writing("bad"))
        assert raised.value.outcome == "unknown"
        # Before it is written again the state looks whether it was.
        words = [each[0] for each in driver.requests]
        assert words.count("CALL") > 1
        assert ("CALL", "CALL") not in itertools.pairwise(words)
        await state.run_write(writing("good"))
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
    async with place.open(busy_timeout_ms=100) as state:
        place.query(FAILING.replace("SQLSTATE", f"'{sqlstate}'"))
        with pytest.raises(kind) as raised:
            await state.run_write(writing("the text"))
        assert raised.value.code == code
        texts = []
        error: BaseException | None = raised.value
        while error is not None:
            texts.append(f"{error!r} {error}")
            error = error.__cause__ or error.__context__
        assert [text for text in texts if "the text" in text] == []
        assert sqlstate in texts[-1]
    assert conversations(place) == []


async def test_a_store_that_is_kept_locked_is_unavailable(place: Place) -> None:
    async with place.open(busy_timeout_ms=50) as state:
        with holding(place, LOCKED):
            with pytest.raises(StateUnavailableError) as raised:
                await append(state, "m1")
            assert await stored(state) == []
        assert await append(state, "m1") == [1]
    assert (raised.value.outcome, raised.value.retryable) == ("not_written", True)
    assert "somebody else" in str(raised.value.__cause__)


async def test_a_write_waits_for_another_process_as_long_as_it_was_told(place: Place) -> None:
    async with place.open(busy_timeout_ms=60_000) as state:
        with holding(place, LOCKED):
            task = asyncio.ensure_future(append(state, "m1"))
            assert await stored(state) == []
            await until(place, BLOCKED, 1)
        assert await task == [1]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [("SELECT pg_sleep(600)", "not_written"), ("VALUES (pg_sleep(600))", "unknown")],
)
async def test_a_server_that_does_not_answer_in_time_is_given_up(
    postgres: PostgresServer, text: str, outcome: str
) -> None:
    options = StateOptions(busy_timeout_ms=50)
    driver = PostgresDriver(parse_target(postgres.url), options, answer_seconds=0.05)
    with pytest.raises(StateUnavailableError) as raised:
        await driver.execute(text, {})
    assert raised.value.outcome == outcome
    await driver.aclose()


async def test_pauses_double_from_50_ms_to_2_s() -> None:
    longest: list[float] = []

    async def pause(seconds: float) -> None:
        longest.append(seconds)
        if len(longest) == 8:
            raise EnoughPauses

    url = f"postgresql://postgres@127.0.0.1:{free_port()}/postgres"
    retrying = Retrying(sleep=pause, draw=lambda: 1.0)
    options = StateOptions(busy_timeout_ms=600_000)
    driver = PostgresDriver(parse_target(url), options, retrying=retrying)
    with pytest.raises(EnoughPauses):
        await driver.execute("SELECT 1", {})
    assert longest == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
