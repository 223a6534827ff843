"""The protocol: versions, errors that a healthy server does not make, and what is repeated."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from aiohttp import web

from tests.providers.libsql_helpers import (
    QUICK,
    Answer,
    Loopback,
    Received,
    driving,
    drop,
    in_turn,
    say,
    say_error,
    say_rows,
)
from vitehub_chat.errors import ConfigError, StateConflictError, StateError, StateUnavailableError
from vitehub_chat.state.providers.libsql.limits import Limits

SELECT = "SELECT 1"
INSERT = "INSERT INTO things VALUES (1)"
YES = say_rows(["yes"])
PATIENT = Limits(retry=30.0)


async def v2_only(received: Received) -> web.StreamResponse | None:
    return await (YES if received.path == "/base/v2/pipeline" else say(404))(received)


async def test_an_older_version_is_found_once_and_kept() -> None:
    async with Loopback(v2_only) as server, driving(f"{server.url}/base") as driver:
        assert await driver.execute(SELECT, {}) == [("yes",)]
        assert await driver.execute(INSERT, {}) == [("yes",)]

    assert [each.path for each in server.received] == [
        "/base/v3/pipeline",
        "/base/v2/pipeline",
        "/base/v2/pipeline",
    ]


@pytest.mark.parametrize("status", [404, 405])
async def test_a_server_without_the_protocol_is_a_configuration_error(status: int) -> None:
    async with Loopback(say(status)) as server, driving(server.url) as driver:
        with pytest.raises(ConfigError) as caught:
            await driver.execute(INSERT, {})

    assert caught.value.path == "state.url"
    assert [each.path for each in server.received] == ["/v3/pipeline", "/v2/pipeline"]


async def test_every_request_has_a_new_stream_and_closes_it() -> None:
    async with Loopback(YES) as server, driving(server.url) as driver:
        await driver.execute(SELECT, {})
        await driver.execute(INSERT, {})

    for body in (json.loads(each.body) for each in server.received):
        assert (body["baton"], body["requests"][-1]) == (None, {"type": "close"})


@pytest.mark.parametrize("sql", [SELECT, INSERT])
@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "Received an invalid baton"),
        (400, '{"message":"The stream has expired due to inactivity","code":"STREAM_EXPIRED"}'),
        (404, '{"error":"stream not found: 7e3a:1"}'),
        (410, '{"message":"stream is closed"}'),
    ],
)
async def test_a_lost_stream_is_opened_again(sql: str, status: int, text: str) -> None:
    async with Loopback(in_turn(say(status, text), YES)) as server, driving(server.url) as driver:
        assert await driver.execute(sql, {}) == [("yes",)]

    assert len(server.received) == 2


@pytest.mark.parametrize(
    "busy",
    [
        say(429),
        say(503, "s3cret"),
        say_error("SQLITE_BUSY", "database is locked"),
        say_error("SQLITE_BUSY_SNAPSHOT"),
        say_error("TRANSACTION_TIMEOUT"),
    ],
    ids=["429", "503", "busy", "snapshot", "timeout"],
)
async def test_what_was_not_done_is_repeated_until_it_is(busy: Answer) -> None:
    answers = in_turn(busy, busy, busy, YES)
    async with Loopback(answers) as server, driving(server.url, limits=PATIENT) as driver:
        assert await driver.execute(INSERT, {}) == [("yes",)]

    assert len(server.received) == 4


async def test_the_repeats_end_in_time_and_say_that_nothing_was_written() -> None:
    limits = Limits(retry=0.2)
    async with Loopback(say(503, "s3cret")) as server, driving(server.url, limits=limits) as driver:
        with pytest.raises(StateUnavailableError) as caught:
            await driver.execute(INSERT, {})

    assert (caught.value.outcome, caught.value.retryable) == ("not_written", True)
    assert len(server.received) >= 2


@pytest.mark.parametrize(
    "lost",
    [
        drop,
        say(500, "s3cret"),
        say(502),
        say(200, "no JSON"),
        say(200, '{"results":[]}'),
        say(200, '{"results":[{"type":"ok"}]}'),
        say_error("STREAM_EXPIRED"),
    ],
    ids=["dropped", "500", "502", "no JSON", "empty", "incomplete", "stream"],
)
async def test_what_may_have_been_done_is_repeated_if_twice_is_as_good_as_once(
    lost: Answer,
) -> None:
    async with (
        Loopback(in_turn(lost, YES, lost, YES, lost, YES)) as server,
        driving(server.url, limits=PATIENT) as driver,
    ):
        assert await driver.execute(SELECT, {}) == [("yes",)]
        assert await driver.execute(INSERT, {}, idempotent=True) == [("yes",)]
        with pytest.raises(StateUnavailableError) as caught:
            await driver.execute(INSERT, {})

    assert caught.value.outcome == "unknown"
    assert len(server.received) == 5


async def test_an_unknown_outcome_stays_unknown_when_the_repeats_are_refused() -> None:
    limits = Limits(retry=0.1)
    async with (
        Loopback(in_turn(drop, say(503))) as server,
        driving(server.url, limits=limits) as driver,
    ):
        with pytest.raises(StateUnavailableError) as caught:
            await driver.execute(INSERT, {}, idempotent=True)

    assert caught.value.outcome == "unknown"


async def test_a_read_without_an_answer_has_written_nothing() -> None:
    async with Loopback(drop) as server, driving(server.url, limits=QUICK) as driver:
        with pytest.raises(StateUnavailableError) as caught:
            await driver.execute(SELECT, {})

    assert caught.value.outcome == "not_written"


@pytest.mark.parametrize(
    ("code", "kind", "error_code"),
    [
        ("SQLITE_CONSTRAINT", StateConflictError, "state_conflict"),
        ("SQLITE_CONSTRAINT_UNIQUE", StateConflictError, "state_conflict"),
        ("SQLITE_FULL", StateError, "no_space"),
        ("SQLITE_READONLY", StateError, "read_only"),
        ("BLOCKED", StateError, "read_only"),
        ("SQLITE_CORRUPT", StateError, "corrupt"),
        ("SQLITE_NOTADB", StateError, "corrupt"),
        ("SQLITE_TOOBIG", StateError, "too_large"),
        ("RESPONSE_TOO_LARGE", StateError, "too_large"),
        ("SQLITE_UNKNOWN", StateError, "state_error"),
        ("AUTH_JWT_EXPIRED", ConfigError, "unauthorized"),
    ],
)
async def test_an_error_has_its_type_and_is_not_repeated(
    code: str, kind: type[StateError], error_code: str
) -> None:
    answer = say_error(code, "near 's3cret' \"s3cret\" `s3cret")
    async with Loopback(answer) as server, driving(server.url, limits=PATIENT) as driver:
        with pytest.raises(kind) as caught:
            await driver.execute(INSERT, {})

    assert (type(caught.value), caught.value.code) == (kind, error_code)
    assert len(server.received) == 1
    assert "s3cret" not in f"{caught.value} {caught.value.__cause__}"


async def test_a_request_that_is_too_large_for_the_server_is_a_typed_error() -> None:
    async with Loopback(say(413)) as server, driving(server.url, limits=PATIENT) as driver:
        with pytest.raises(StateError, match="a request is larger") as caught:
            await driver.execute(INSERT, {})

    assert caught.value.code == "too_large"
    assert len(server.received) == 1


async def test_reads_ask_a_replica_for_what_was_written_before() -> None:
    answers = in_turn(
        YES,
        say_rows(["yes"], index="7"),
        say_rows(["yes"], index="9"),
        YES,
        say_rows(["yes"], index="3"),
        YES,
    )
    async with Loopback(answers) as server, driving(server.url) as driver:
        for sql in (SELECT, INSERT, SELECT, SELECT, INSERT, SELECT):
            await driver.execute(sql, {})
        await driver.batch([(SELECT, {}), (SELECT, {})])

    singles = [each.parts[0]["stmt"].get("replication_index") for each in server.received[:-1]]
    assert singles == [None, None, "7", "9", None, "3"]
    assert server.received[-1].parts[0]["batch"]["replication_index"] == "3"


async def test_nothing_of_a_request_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    url = "http://127.0.0.1:9/s3cret"
    async with driving(url, token="s3cret", limits=QUICK) as driver:  # noqa: S106  made up
        with pytest.raises(StateUnavailableError):
            await driver.execute("SELECT :value", {"value": "s3cret"})
        assert "s3cret" not in repr(driver)
    await asyncio.sleep(0)

    assert "s3cret" not in caplog.text
