"""Schemas that change: by itself, in place, and with everything that works afterwards."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.faults.crew import Crew
from tests.faults.homes import KINDS, Home, SqliteHome, new_home, open_home, options_of
from tests.migrations.places import (
    check_contents,
    contents_of,
    dumps_of,
    newest_version,
    restore,
    versions_in,
)
from tests.migrations.write_fixtures import KEY
from vitehub_chat.errors import ConfigError, SchemaVersionError
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.checks.catalogue import all_checks
from vitehub_chat.testing.clock import FakeClock
from vitehub_chat.testing.conformance import run_checks

MANY = 20_000
ELSEWHERE = {"cancelling", "contents", "damaged", "interleavings", "keys", "lifecycle"}
"""Groups of checks that take long and ask nothing of a schema that others do not."""
FILL = f"""
WITH RECURSIVE numbers (n) AS (SELECT 4 UNION ALL SELECT n + 1 FROM numbers WHERE n < {MANY})
INSERT INTO $rows SELECT (r.id & ~4294967295) + n, {{columns}} FROM $rows AS r, numbers
WHERE r.message_id = 'm3'
"""  # noqa: S608  constants


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """Give an empty place."""
    return new_home(request.node.callspec.params.get("kind", "sqlite"), request, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
async def test_L214_a_store_is_brought_up_to_date_at_open_unless_it_must_not_be(
    home: Home, kind: str
) -> None:
    newest = newest_version(kind)
    dump = dumps_of(kind)[0]
    restore(home, dump)
    before = contents_of(home)
    is_old = versions_in(home) != list(range(1, newest + 1))
    planned = await open_home(home, clock=FakeClock()).admin.migrate(dry_run=True)
    assert (planned.from_version, planned.to_version) == (versions_in(home)[-1], newest)
    if is_old:
        with pytest.raises(ConfigError, match="migrate"):
            await open_home(home, migrate=False).__aenter__()
    assert contents_of(home) == before
    states = [open_home(home, clock=FakeClock()) for _ in range(10)]
    await asyncio.gather(*(state.__aenter__() for state in states))
    await check_contents(states[0], dump)
    await asyncio.gather(*(state.aclose() for state in states))
    assert versions_in(home) == list(range(1, newest + 1))
    home.ask(
        f"INSERT INTO $schema (version, at, checksum) VALUES ({newest + 1}, 0, '')"  # noqa: S608
    )
    with pytest.raises(SchemaVersionError) as raised:
        await open_home(home).__aenter__()
    assert str(raised.value) == (
        f"the state has schema version {newest + 1}, this release knows {newest}"
        " (upgrade vitehub-chat)"
    )


async def test_L234_a_large_file_killed_while_it_is_migrated_is_migrated_in_place(
    crew: Crew, tmp_path: Path
) -> None:
    home = SqliteHome(tmp_path / "state.db")
    restore(home, dumps_of("sqlite")[0])
    columns = [name for _, name, *_ in home.ask("PRAGMA table_info($rows)")]
    values = {
        "id": None,
        "message_id": "'m' || n",
        "body": "replace(body, 'é 3', hex(randomblob(500)))",
    }
    kept = ", ".join(values.get(name, name) or "" for name in columns if name != "id")
    home.ask(FILL.format(columns=kept))
    home.ask("UPDATE $conversations SET last_seq = (SELECT count(*) FROM $rows)")
    digest = "SELECT count(*), sum(id), sum(length(body)), max(body), min(body) FROM $rows"
    before, inode = home.ask(digest), home.path.stat().st_ino
    assert before[0][0] == MANY
    assert home.path.stat().st_size > 20_000_000
    codes: list[int] = []
    for number in range(5, 100, 6):
        found, _ = await asyncio.to_thread(
            crew.run,
            1,
            "open_many",
            url=home.url,
            options=options_of(home),
            times=1,
            dies_at=number,
        )
        codes += found
        assert home.ask(digest) == before
    assert set(codes) <= {-signal.SIGKILL, 0}
    assert codes[0] == -signal.SIGKILL
    async with open_home(home, clock=FakeClock()) as state:
        assert len(await state.transcripts.get(KEY, message_ids=["m1", f"m{MANY}"])) == 2
    assert (home.ask(digest), home.path.stat().st_ino) == (before, inode)
    assert versions_in(home) == list(range(1, newest_version("sqlite") + 1))
    assert home.ask("PRAGMA integrity_check") == [("ok",)]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
async def test_L102_everything_works_on_a_store_that_was_just_migrated(
    home: Home, kind: str
) -> None:
    restore(home, dumps_of(kind)[0])

    def open_state(clock: Clock, **options: object) -> AgentState:
        return open_home(home, clock=clock, **options)

    checks = [check for check in all_checks() if check.name.partition(".")[0] not in ELSEWHERE]
    if kind != "sqlite":  # The tables are the same: of every subject enough to use all of them.
        checks = [each for number, each in enumerate(checks) if number % 3 == 0]
    results = await run_checks(open_state, checks=checks)
    assert [each for each in results if each.outcome == "failed"] == []
    assert len([each for each in results if each.outcome == "ok"]) > len(checks) // 2
