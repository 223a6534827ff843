"""What goes wrong: conflicts, lost connections, and a server that refuses or is away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.providers.postgres_server import (
    Place,
    conversations,
    cursor_of,
    free_port,
    holding,
    writing,
)
from tests.providers.sqlite_helpers import append, stored
from vitehub_chat.errors import ConfigError, StateError, StateUnavailableError
from vitehub_chat.state.providers.postgres.link import READING, Link, full_jitter
from vitehub_chat.state.tables import Transaction

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
