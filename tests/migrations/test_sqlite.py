"""Databases of every schema that was ever released open, with what they hold."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.migrations.write_sqlite_fixture import ENTRY, KEY, SESSION
from vitehub_chat.model.messages import Message
from vitehub_chat.state.contract import StateContext
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.sql.named import load_migrations
from vitehub_chat.state.values import NewRow, WindowRequest
from vitehub_chat.testing.clock import FakeClock

DUMPS = sorted(Path(__file__).parent.glob("sqlite_*.sql"))
TABLES = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"


def test_every_version_has_its_database() -> None:
    versions = [migration.version for migration in load_migrations("sqlite", "p_")]
    assert [dump.name for dump in DUMPS] == [f"sqlite_{version}.sql" for version in versions]


@pytest.mark.parametrize("dump", DUMPS, ids=lambda dump: dump.stem)
async def test_an_old_database_opens_with_what_it_holds(tmp_path: Path, dump: Path) -> None:
    path = restore(dump, tmp_path / "x.db")
    async with open_sqlite(str(path), clock=FakeClock()) as state:
        session = await state.sessions.resolve(SESSION)
        window = await state.transcripts.window(KEY, session=session, window=WindowRequest(limit=9))
        summary = await state.summaries.get_manual(KEY, session_id=None)
        outcome = await state.turns.outcome(ENTRY.ticket_id, ctx=StateContext())
        [added] = await state.transcripts.append(
            SESSION, rows=[NewRow(message=Message("m5", "user", ()))]
        )
    assert [(each.seq, each.message.id) for each in window.shown] == [
        (1, "m1"),
        (2, "m2"),
        (3, "m3"),
    ]
    assert window.shown[0].message.text == "é 1"
    assert summary is not None
    assert summary.text == "They said hello."
    assert outcome.grant is not None
    assert [each.payload for each in outcome.grant.entries] == [ENTRY.payload]
    assert added.seq == 4


@pytest.mark.parametrize("dump", DUMPS, ids=lambda dump: dump.stem)
async def test_a_migrated_database_has_the_tables_of_a_new_one(tmp_path: Path, dump: Path) -> None:
    old, new = restore(dump, tmp_path / "old.db"), tmp_path / "new.db"
    for path in (old, new):
        async with open_sqlite(str(path)):
            pass
    assert tables_of(old) == tables_of(new)


def restore(dump: Path, path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(dump.read_text(encoding="utf-8"))
    return path


def tables_of(path: Path) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(TABLES).fetchall()
