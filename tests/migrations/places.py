"""Places: stores of every schema that was ever released, and what has to be in them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.faults.homes import Home
from tests.migrations.write_fixtures import DUMPS, ENTRY, KEY, SESSION
from vitehub_chat.model.messages import Message
from vitehub_chat.state.contract import AgentState, SearchRequest, StateContext
from vitehub_chat.state.sql.named import load_migrations
from vitehub_chat.state.values import NewRow, WindowRequest

FOLDER: Final = Path(__file__).parent
_FIRST_TABLES: Final = (
    "conversations",
    "entries",
    "locks",
    "meta",
    "rows",
    "schema",
    "sessions",
    "summaries",
)
_NEWEST: Final = {kind: len(load_migrations(dialect, "p_")) for kind, (dialect, _) in DUMPS.items()}


def version_of(dump: Path) -> int:
    """Return the schema version of a dump."""
    return int(dump.stem.partition("_")[2])


def dumps_of(kind: str) -> list[Path]:
    """Return the dumps of a kind, oldest first."""
    return sorted(FOLDER.glob(f"{kind}_*.sql"), key=version_of)


def newest_version(kind: str) -> int:
    """Return the schema version of this release."""
    return _NEWEST[kind]


def all_dumps(*, only_older: bool = False) -> list[object]:
    """Return every dump, or those of older schemas, as parameters of tests."""
    return [
        pytest.param(dump, id=dump.stem, marks=[] if kind == "sqlite" else [pytest.mark.service])
        for kind in DUMPS
        for dump in dumps_of(kind)
        if not only_older or version_of(dump) < newest_version(kind)
    ]


def restore(home: Home, dump: Path) -> None:
    """Make the store that a dump holds."""
    home.restore(dump.read_text(encoding="utf-8"))


def versions_in(home: Home) -> list[int]:
    """Return the versions that were noted, in order."""
    return [int(version) for (version,) in home.ask("SELECT version FROM $schema ORDER BY version")]


def contents_of(home: Home) -> object:
    """Return what is in the tables of the first schema."""
    found = {}
    for name in _FIRST_TABLES:
        rows = home.ask(f"SELECT * FROM ${name}")  # noqa: S608  names of ours
        found[name] = sorted(map(repr, rows))
    return found


def value_in(dump: Path) -> object:
    """Return the value that a dump holds; the first schemas had no place for one."""
    return {"at": 3} if "'cursor'" in dump.read_text(encoding="utf-8") else None


async def check_contents(state: AgentState, dump: Path) -> None:
    """Check that a store holds what its dump does, and that it goes on."""
    session = await state.sessions.resolve(SESSION)
    window = await state.transcripts.window(KEY, session=session, window=WindowRequest(limit=9))
    summary = await state.summaries.get_manual(KEY, session_id=None)
    assert state.search is not None
    hits = await state.search.search(
        KEY.tenant, agent=KEY.agent, request=SearchRequest(query="\u00c9")
    )
    outcome = await state.turns.outcome(ENTRY.ticket_id, ctx=StateContext())
    [added] = await state.transcripts.append(
        SESSION, rows=[NewRow(message=Message("m5", "user", ()))]
    )
    found = [(each.seq, each.message.id, each.message.text) for each in window.shown]
    assert found == [(number, f"m{number}", f"é {number}") for number in (1, 2, 3)]
    assert [hit.message_id for hit in hits.items] == ["m3", "m2", "m1"]
    assert summary is not None
    assert summary.text == "They said hello."
    assert outcome.grant is not None
    assert [each.payload for each in outcome.grant.entries] == [ENTRY.payload]
    assert added.seq == 4
    assert await state.values.get("cursor", scope=KEY) == value_in(dump)
    await state.values.set("cursor", value={"at": 4}, scope=KEY)
    assert await state.values.get("cursor", scope=KEY) == {"at": 4}
