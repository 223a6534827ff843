"""The tables in PostgreSQL: they answer like plain ones, and touch no more than they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import attrs
import psycopg
import pytest

from tests.providers.postgres_server import Place, PostgresServer, cursor_of
from tests.providers.table_checks import RolledBack, check_tables
from vitehub_chat.errors import ConfigError, StateError
from vitehub_chat.state.providers.postgres.state import PostgresAgentState
from vitehub_chat.state.providers.postgres.statements import compile_text, hash_of, load_texts
from vitehub_chat.state.providers.postgres.texts import escape, restore
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.sql.named import load_migrations, load_statements
from vitehub_chat.state.sql.rows import _bounds_of, _name_of
from vitehub_chat.state.tables import RowQuery, Transaction
from vitehub_chat.testing.clock import FakeClock

T = TypeVar("T")

FRAGMENTS = {"rows.live", "sessions.page", "meta.settings"} | {
    "entries.select_entry",
    "rows.select_row",
    "sessions.select_session",
}
TEXTS = load_statements("postgres", "p_")
STATEMENTS = {name: text for name, text in TEXTS.items() if name not in FRAGMENTS}
PLANNED = [
    name
    for name, text in STATEMENTS.items()
    if text.startswith(("SELECT", "INSERT", "UPDATE", "DELETE"))
]
READS_ALL = {"meta.versions"}
FACTS = {"starts_session", "coalesces", "is_shown", "began_by_new", "least_shown"}
TEXT_NAMES = {"lock_key", "claim_key", "conversation", "encoded", "lane", "scope", "base", "state"}
TEXT_NAMES |= {"agent", "user_key", "tenant", "owner", "payload", "end", "title", "status", "role"}
TEXT_NAMES |= {"thread_id", "author", "fence_key", "body", "extra", "text", "checksum"}

FILL = """
INSERT INTO $rows (id, conversation_key, session_key, message_id, role, status, recorded_at,
    turn_no, is_shown, body)
SELECT (1::bigint << 32) + n, 1, 1, 'm' || n, 'user', 'complete', 0, n, n % 10 != 0, '{}'
FROM generate_series(first, last) AS n
"""

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


class Gapless(PostgresAgentState):
    """Takes back the keys of what was rolled back: the plain tables have no gaps."""

    async def run_write(self, step: Callable[[Transaction], T], /) -> T:
        marks: list[tuple[str, int, bool]] = []

        def marked(tx: Transaction) -> T:
            marks[:] = read_sequences(tx, self.options.table_prefix)
            return step(tx)

        try:
            return await super().run_write(marked)
        except RolledBack:
            await super().run_write(lambda tx: set_sequences(tx, marks))
            raise


class OneForEach(dict[str, Any]):
    """Parameters of any statement."""

    def __missing__(self, name: str) -> object:
        if name.endswith("_hash"):
            return b"1"
        if name in FACTS:
            return True
        return "1" if name in TEXT_NAMES or name.endswith("_id") else 1


def read_sequences(tx: Transaction, prefix: str) -> list[tuple[str, int, bool]]:
    names = [f"{prefix}{table}_key_seq" for table in ("conversations", "sessions")]
    marks = []
    for name in names:
        query = f"SELECT '{name}', last_value, is_called FROM {name}"  # noqa: S608  our own name
        marks += cursor_of(tx).execute(query.encode()).fetchall()
    return cast("list[tuple[str, int, bool]]", marks)


def set_sequences(tx: Transaction, marks: list[tuple[str, int, bool]]) -> None:
    for mark in marks:
        cursor_of(tx).execute("SELECT setval(%s::regclass, %s, %s)", mark)


@pytest.fixture
async def opened(place: Place) -> Place:
    """Give a place whose tables exist."""
    async with place.open():
        return place


@pytest.mark.service
def test_it_answers_like_plain_tables(postgres: PostgresServer) -> None:
    def open_next() -> PostgresAgentState:
        opened = Place(postgres).open(clock=FakeClock(), durability="normal")
        return Gapless(opened._connector, clock=opened.clock)

    check_tables(open_next, examples=4)


@pytest.mark.service
async def test_no_statement_scans_a_table(opened: Place) -> None:
    texts = load_texts(opened.prefix)
    scans: dict[str, list[Any]] = {}
    with planning(opened) as cursor:
        for name in PLANNED:
            plan = explain(cursor, "", texts[name].text, OneForEach())
            scans[name] = [node for node in plan if is_scan(node)]
    by_index = {"Index Scan", "Index Only Scan", "Bitmap Index Scan", "Bitmap Heap Scan"}
    unbounded = {
        name
        for name, nodes in scans.items()
        for node in nodes
        if node["Node Type"] not in by_index or not {"Index Cond", "Recheck Cond"} & set(node)
    }
    assert unbounded == READS_ALL
    assert len(PLANNED) > 50


@pytest.mark.service
@pytest.mark.parametrize("kind", QUERIES)
async def test_a_window_costs_the_same_whatever_the_history_holds(opened: Place, kind: str) -> None:
    fill(opened, 1, 100)
    before = count_touched(opened, QUERIES[kind])
    fill(opened, 101, 5000)
    assert 0 < count_touched(opened, QUERIES[kind]) <= before * 1.2


@pytest.mark.service
async def test_selecting_no_number_beyond_a_conversation(place: Place) -> None:
    far = RowQuery(conversation_key=1, above=2**40, below=2**41, limit=9, now=0)
    wide = RowQuery(conversation_key=1, above=-(2**40), below=2**41, limit=9, now=0)

    def step(tx: Transaction) -> tuple[object, list[int]]:
        for key in (1, 2):
            tx.rows.insert(attrs.evolve(record(1), conversation_key=key))
            tx.rows.insert(attrs.evolve(record(2), conversation_key=key))
        return tx.rows.select(far), [each.conversation_key for each in tx.rows.select(wide)]

    async with place.open() as state:
        assert await state.run_write(step) == ([], [1, 1])


@pytest.mark.service
async def test_a_message_id_is_stored_once_in_a_conversation(place: Place) -> None:
    async with place.open() as state:
        await state.run_write(lambda tx: tx.rows.insert(record(1)))
        with pytest.raises(StateError, match="stored already"):
            await state.run_write(
                lambda tx: tx.rows.insert(attrs.evolve(record(2), message_id="m1"))
            )


@pytest.mark.service
async def test_a_message_takes_the_place_of_its_expired_row(place: Place) -> None:
    async with place.open() as state:
        await state.run_write(lambda tx: tx.rows.insert(attrs.evolve(record(1), expires_at=10)))
        await state.run_write(lambda tx: tx.rows.insert(attrs.evolve(record(2), message_id="m1")))
    assert place.query("SELECT id & 4294967295, message_id, expires_at FROM $rows") == [
        (2, "m1", None)
    ]


@pytest.mark.parametrize("prefix", ["", "a-b_", "1a", "a b", "a;b", 'a"', "ä"])
def test_a_prefix_that_is_no_name_is_never_formatted_into_sql(prefix: str) -> None:
    for load in (load_statements, load_migrations):
        with pytest.raises(ConfigError, match=r"state\.table_prefix"):
            load("postgres", prefix)


def test_every_value_of_a_statement_is_a_parameter() -> None:
    literals = {each for text in STATEMENTS.values() for each in text.split("'")[1::2]}
    states = {"waiting", "running", "recorded", "ended", "lost", "pending"}
    assert literals - states == {
        "p_tokens",
        "p_schema",
        "server_version_num",
        "server_encoding",
    }


def test_a_cast_is_no_parameter_and_a_hash_is_made_of_its_value() -> None:
    statement = compile_text("SELECT :a::text LIKE '%' AND b_hash = :b_hash")
    assert statement.text == b"SELECT %(a)s::text LIKE '%%' AND b_hash = %(b_hash)s"
    assert statement.bind({"a": 1, "b": "x"}) == {"a": 1, "b": "x", "b_hash": hash_of("x")}


def test_nothing_has_another_hash_than_any_text() -> None:
    assert len({hash_of(each) for each in (None, "", "None", "\xff", "-")}) == 5


@pytest.mark.parametrize("text", ["", "a", "\0", "\x1a", "\x1as", "\x1a0", "s\0\x1a\0", "é\0🙂"])
def test_every_text_comes_back_and_none_is_stored_with_nul(text: str) -> None:
    assert restore(escape(text)) == text
    assert "\0" not in escape(text)


@contextmanager
def planning(place: Place) -> Iterator[psycopg.Cursor[Any]]:
    """Give a cursor of a transaction that plans as those of the provider do."""
    with place.connected() as connection:
        connection.execute(b"SET LOCAL enable_seqscan = off")
        yield connection.cursor()


def explain(
    cursor: psycopg.Cursor[Any], options: str, text: bytes, values: Any
) -> list[dict[str, Any]]:
    """Return the nodes of the plan of a statement."""
    query = f"EXPLAIN ({options}FORMAT JSON) ".encode() + text
    [(plans,)] = cursor.execute(query, values).fetchall()
    return list(nodes_of(plans[0]["Plan"]))


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes_of(child)


def is_scan(node: dict[str, Any]) -> bool:
    return "Scan" in node["Node Type"] and node["Node Type"] != "Subquery Scan"


def fill(place: Place, first: int, last: int) -> None:
    place.query(FILL.replace("first", str(first)).replace("last", str(last)))
    place.query("ANALYZE $rows")


def count_touched(place: Place, query: RowQuery) -> int:
    """Count the rows that a query looks at."""
    text = load_texts(place.prefix)[_name_of(query)].text
    with planning(place) as cursor:
        plan = explain(cursor, "ANALYZE, ", text, _bounds_of(query))
    scans = [node for node in plan if "Index Name" in node]
    return sum(int(node["Actual Rows"]) + node.get("Rows Removed by Filter", 0) for node in scans)


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
