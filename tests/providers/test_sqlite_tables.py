"""The tables in SQLite: they answer like plain ones, and touch no more than they answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.providers.table_checks import check_tables
from vitehub_chat.errors import ConfigError
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.providers.sqlite.tables import SqliteTables
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.sql.named import load_migrations, load_statements
from vitehub_chat.state.tables import RowQuery
from vitehub_chat.testing.clock import FakeClock

FRAGMENTS = {"rows.live", "rows.select_row", "entries.select_entry"} | {
    "documents.live",
    "documents.select_document",
    "sessions.page",
    "sessions.select_session",
}
TEXTS = load_statements("sqlite", "p_")
STATEMENTS = {
    name: text
    for name, text in TEXTS.items()
    # Those of whoever looks after a store look at all of it, and are made of constants.
    if name not in FRAGMENTS and not name.startswith("admin.")
}
HARMLESS = {
    "SCAN sqlite_schema",
    "SCAN p_schema",
    "SCAN CONSTANT ROW",
    # What is asked for, as a list.
    "SCAN chosen VIRTUAL TABLE INDEX 1:",
    "SCAN word VIRTUAL TABLE INDEX 1:",
    # Indexes of what waits and runs now, which is little.
    "SCAN p_entries USING INDEX p_entries_waiting",
    "SCAN p_entries USING INDEX p_entries_run",
}

QUERIES = {
    "newest of a session": RowQuery(
        conversation_key=1, session_key=1, is_shown=True, order="descending", limit=20, now=0
    ),
    "newest of a conversation": RowQuery(
        conversation_key=1, is_shown=True, order="descending", limit=20, now=0
    ),
    "a page of a session": RowQuery(
        conversation_key=1, session_key=1, above=50, below=90, limit=20, now=0
    ),
    "not shown between": RowQuery(
        conversation_key=1, session_key=1, is_shown=False, above=40, below=90, limit=20, now=0
    ),
    "not shown in a conversation": RowQuery(
        conversation_key=1, is_shown=False, above=40, below=90, limit=20, now=0
    ),
}


class OneForEach(dict[str, Any]):
    """Parameters of any statement."""

    def __missing__(self, name: str) -> int:
        return 1


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        for migration in load_migrations("sqlite", "p_"):
            for text in migration.statements:
                opened.execute(text, {"secret": b"secret"})
        yield opened


@pytest.mark.slow
def test_a_file_answers_like_plain_tables(tmp_path: Path) -> None:
    numbers = count()

    def open_next() -> Any:
        path = tmp_path / f"{next(numbers)}.db"
        return open_sqlite(f"file:{path}", clock=FakeClock(), durability="normal")

    check_tables(open_next, examples=25)


@pytest.mark.slow
def test_a_store_in_memory_answers_like_plain_tables() -> None:
    check_tables(lambda: open_sqlite(":memory:", clock=FakeClock()), examples=25)


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_scans_a_table(connection: sqlite3.Connection, name: str) -> None:
    plan = connection.execute(f"EXPLAIN QUERY PLAN {STATEMENTS[name]}", OneForEach()).fetchall()
    scans = {detail for *_, detail in plan if detail.startswith("SCAN")}
    assert scans - HARMLESS == set()


@pytest.mark.parametrize("kind", QUERIES)
def test_a_window_costs_the_same_whatever_the_history_holds(
    connection: sqlite3.Connection, kind: str
) -> None:
    tables = SqliteTables(Statements(connection, TEXTS))
    fill(tables, range(1, 101))
    before = cost(connection, tables, QUERIES[kind])
    fill(tables, range(101, 5001))
    after = cost(connection, tables, QUERIES[kind])
    assert after <= before * 1.2


def test_selecting_no_number_beyond_a_conversation(connection: sqlite3.Connection) -> None:
    tables = SqliteTables(Statements(connection, TEXTS))
    fill(tables, [1, 2], conversation_key=1)
    fill(tables, [1, 2], conversation_key=2)
    far = RowQuery(conversation_key=1, above=2**40, below=2**41, limit=9, now=0)
    wide = RowQuery(conversation_key=1, above=-(2**40), below=2**41, limit=9, now=0)
    assert tables.rows.select(far) == []
    assert [each.conversation_key for each in tables.rows.select(wide)] == [1, 1]


def test_a_message_id_is_stored_once_in_a_conversation(connection: sqlite3.Connection) -> None:
    tables = SqliteTables(Statements(connection, TEXTS))
    tables.rows.insert(record(1))
    with pytest.raises(sqlite3.IntegrityError):
        tables.rows.insert(attrs.evolve(record(2), message_id="m1"))


def test_a_message_takes_the_place_of_its_expired_row(connection: sqlite3.Connection) -> None:
    tables = SqliteTables(Statements(connection, TEXTS))
    tables.rows.insert(attrs.evolve(record(1), expires_at=10))
    tables.rows.insert(attrs.evolve(record(2), message_id="m1"))
    everything = RowQuery(conversation_key=1, limit=9, now=0)
    assert [each.seq for each in tables.rows.select(everything)] == [2]


@pytest.mark.parametrize("prefix", ["", "a-b_", "1a", "a b", "a;b", 'a"', "ä"])
def test_a_prefix_that_is_no_name_is_never_formatted_into_sql(prefix: str) -> None:
    for load in (load_statements, load_migrations):
        with pytest.raises(ConfigError, match=r"state\.table_prefix"):
            load("sqlite", prefix)


def test_every_value_of_a_statement_is_a_parameter() -> None:
    literals = {name: literal_texts(text) for name, text in STATEMENTS.items()}
    states = {"waiting", "running", "recorded", "ended", "lost", "pending", "table", "p_schema"}
    states |= {"hidden", "superseded"}
    assert set().union(*literals.values()) - states == set()


def fill(tables: SqliteTables, numbers: Any, conversation_key: int = 1) -> None:
    for seq in numbers:
        tables.rows.insert(attrs.evolve(record(seq), conversation_key=conversation_key))


def record(seq: int) -> RowRecord:
    return RowRecord(
        conversation_key=1,
        seq=seq,
        session_key=1,
        session_id=None,
        message_id=f"m{seq}",
        role="user",
        status="complete",
        created_at=None,
        recorded_at=0,
        turn_no=seq,
        turn_id=None,
        thread_id=None,
        author=None,
        is_shown=seq % 10 != 0,
        body="{}",
        extra=None,
    )


def cost(connection: sqlite3.Connection, tables: SqliteTables, query: RowQuery) -> int:
    """Count the instructions of SQLite that a query takes."""
    instructions = count()
    connection.set_progress_handler(lambda: next(instructions) < 0, 1)
    found = tables.rows.select(query)
    connection.set_progress_handler(None, 1)
    assert found
    return next(instructions)


def literal_texts(text: str) -> set[str]:
    return set(text.split("'")[1::2])


def test_the_names_of_statements_are_known_per_file() -> None:
    files: Mapping[str, int] = {name.partition(".")[0]: 1 for name in TEXTS}
    assert sorted(files) == [
        "admin",
        "conversations",
        "documents",
        "drop",
        "entries",
        "locks",
        "meta",
        "rows",
        "sessions",
        "summaries",
    ]
