"""Stores of every schema that was ever released: brought up to date in place, once, or refused."""

from __future__ import annotations

import asyncio
import signal
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.faults.crew import Crew
from tests.faults.homes import KINDS, Home, new_home, open_home, options_of
from tests.faults.network import Network
from tests.migrations.places import (
    all_dumps,
    check_contents,
    contents_of,
    dumps_of,
    newest_version,
    restore,
    version_of,
    versions_in,
)
from tests.migrations.write_fixtures import KEY
from vitehub_chat.errors import ConfigError, SchemaVersionError
from vitehub_chat.testing.checks.material import append
from vitehub_chat.testing.clock import FakeClock

PROCESSES = 4
OPENS = 10


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """Give an empty place of the kind that the test or its dump is about."""
    parameters = request.node.callspec.params
    kind = parameters.get("kind") or parameters["dump"].stem.partition("_")[0]
    return new_home(kind, request, tmp_path)


@pytest.mark.parametrize("kind", ["sqlite", "libsql", "postgres"])
def test_every_version_has_its_dump(kind: str) -> None:
    versions = [version_of(dump) for dump in dumps_of(kind)]
    assert versions == list(range(1, newest_version(kind) + 1))


@pytest.mark.parametrize("dump", all_dumps())
async def test_an_old_store_opens_with_what_it_holds(home: Home, dump: Path) -> None:
    restore(home, dump)
    async with open_home(home, clock=FakeClock()) as state:
        await check_contents(state, dump)
    assert versions_in(home) == list(range(1, newest_version(home.kind) + 1))


@pytest.mark.parametrize("dump", all_dumps())
async def test_a_migrated_store_has_the_tables_of_a_new_one(
    home: Home, dump: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    new = new_home(home.kind, request, tmp_path)
    restore(home, dump)
    for each in (home, new):
        async with open_home(each):
            pass
    assert home.tables() == new.tables()


@pytest.mark.parametrize("dump", all_dumps())
async def test_p20_ten_opens_of_each_of_four_processes_migrate_once(
    crew: Crew, home: Home, dump: Path
) -> None:
    restore(home, dump)
    codes, _ = await asyncio.to_thread(
        crew.run,
        PROCESSES,
        "open_many",
        url=home.url,
        options=options_of(home),
        times=OPENS,
        dies_at=0,
    )
    assert codes == [0] * PROCESSES
    assert versions_in(home) == list(range(1, newest_version(home.kind) + 1))
    async with open_home(home, clock=FakeClock()) as state:
        await check_contents(state, dump)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_opening_killed_at_any_statement_goes_on_where_it_was(
    crew: Crew, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    new, oldest = new_home(kind, request, tmp_path), dumps_of(kind)[0]
    is_old = version_of(oldest) < newest_version(kind)
    async with open_home(new):
        pass
    with Network(port_of(new)) as network:
        for number in count(1):
            killed = new_home(kind, request, tmp_path)
            if is_old:
                restore(killed, oldest)
            code = await asyncio.to_thread(kill_opening, crew, killed, network, number)
            async with open_home(killed, clock=FakeClock()) as state:
                await (check_contents(state, oldest) if is_old else append(state, KEY, "m1"))
            assert killed.tables() == new.tables()
            assert versions_in(killed) == versions_in(new)
            if code == 0:
                break
            assert code == -signal.SIGKILL
    assert number > 5


def port_of(home: Home) -> int:
    """Return the port of a server, 0 for a file."""
    return urlsplit(home.url).port or 0


def kill_opening(crew: Crew, home: Home, network: Network, number: int) -> int:
    """Open a store in a process that dies before something happens; 0 if there is not so much."""
    work: dict[str, Any] = {"options": options_of(home), "times": 1}
    if home.kind == "sqlite":
        [code], _ = crew.run(1, "open_many", url=home.url, dies_at=number, **work)
        return code
    url = home.url.replace(f":{port_of(home)}", f":{network.port}")
    return crew.kill_in_network(network, number, "open_many", url=url, dies_at=0, **work)


@pytest.mark.parametrize("dump", all_dumps(only_older=True))
async def test_without_migrate_an_older_store_is_refused_and_left_as_it_is(
    home: Home, dump: Path
) -> None:
    restore(home, dump)
    before = (contents_of(home), home.tables())
    state = open_home(home, migrate=False, clock=FakeClock())
    for _ in range(2):
        with pytest.raises(ConfigError, match="migrate") as raised:
            await state.__aenter__()
        assert (raised.value.path, raised.value.code) == ("state.migrate", "invalid_option")
    assert (contents_of(home), home.tables()) == before
    async with open_home(home, clock=FakeClock()):
        pass
    async with open_home(home, migrate=False, clock=FakeClock()) as migrated:
        await check_contents(migrated, dump)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_store_of_a_newer_release_is_refused_and_left_as_it_is(
    home: Home, kind: str
) -> None:
    dump = dumps_of(kind)[-1]
    restore(home, dump)
    home.ask("INSERT INTO $schema (version, at, checksum) VALUES (99, 0, 'of the future')")
    before = (contents_of(home), home.tables())
    state = open_home(home, transcripts={"retention": "forever"}, clock=FakeClock())
    for _ in range(2):
        with pytest.raises(SchemaVersionError, match="99") as raised:
            await state.__aenter__()
        assert raised.value.code == "schema_version"
        assert raised.value.hint == "upgrade vitehub-chat"
    assert (contents_of(home), home.tables()) == before
    home.ask("DELETE FROM $schema WHERE version = 99")
    async with state:
        await check_contents(state, dump)
