"""The statements for PostgreSQL: they touch no more than they answer, and every value is safe."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.providers.postgres_server import Place, PostgresServer
from vitehub_chat.errors import ConfigError, StateConflictError
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.postgres.driver import PostgresDriver
from vitehub_chat.state.providers.postgres.statements import command_of, hash_of
from vitehub_chat.state.providers.postgres.target import parse_target
from vitehub_chat.state.providers.postgres.texts import escape, restore
from vitehub_chat.state.sql.driver import Value
from vitehub_chat.state.sql.named import load_migrations, load_statements
from vitehub_chat.state.sql.numbers import BLOCK
from vitehub_chat.state.sql.texts import Texts, load_texts

TEXTS = load_texts("postgres", "p_")
RUN = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
PARTS = ("select_entry", "select_row", "select_session", "select_document")
BY_INDEX = {"Index Scan", "Index Only Scan", "Bitmap Index Scan", "Bitmap Heap Scan"}
READS_ALL = {"meta.versions", "versions.of_requests", "upkeep.raise_scopes"}
READS_ALL |= {"upkeep.has_expiring", "upkeep.raise_expiring", "upkeep.raise_expiring_documents"}
READS_ALL |= {"entries.stalled"}  # of all open entries, which are few
READS_ALL |= {name for name in TEXTS.statements if name.startswith("admin.")}
FACTS = {"starts_session", "coalesces", "is_shown", "began_by_new", "least_shown"}
TEXT_NAMES = {"lock_key", "claim_key", "conversation", "encoded", "lane", "base_lane", "scope"}
TEXT_NAMES |= {"base", "state", "agent", "user_key", "tenant", "owner", "payload", "end", "title"}
TEXT_NAMES |= {"status", "role", "author", "fence_key", "body", "extra", "text", "checksum"}
TEXT_NAMES |= {"home", "kind", "name", "besides", "nonce", "around", "session_scope"}
TEXT_NAMES |= {"session_name", "session_by", "side"}

FILL = """
INSERT INTO $rows (id, conversation_key, session_key, message_id, role, status, recorded_at,
    turn_no, author_hash, is_shown, body)
SELECT (1::bigint << 32) + n, 1, 1, 'm' || n, 'user', 'complete', 0, n, '', n % 10 != 0, '{}'
FROM generate_series(first, last) AS n
"""

BOUNDS: dict[str, Any] = {
    "session_key": 1,
    "least_shown": 1,
    "above": 1 << 32,
    "below": 2 << 32,
    "limit": 20,
    "now": 0,
}
QUERIES = {
    "rows.session_descending": {},
    "rows.conversation_descending": {},
    "rows.session_ascending": {"above": (1 << 32) + 50, "below": (1 << 32) + 90, "least_shown": 0},
    "rows.session_hidden_ascending": {"above": (1 << 32) + 40, "below": (1 << 32) + 90},
    "rows.conversation_hidden_ascending": {"above": (1 << 32) + 40, "below": (1 << 32) + 90},
}


ROW = """conversation_key session_key session_id role status created_at recorded_at turn_no turn_id
thread_id author is_shown fence_key fence_token expires_at body extra search_text"""


class OneForEach(dict[str, Any]):
    """Parameters of any statement."""

    def __missing__(self, name: str) -> object:
        if name in FACTS:
            return 1
        return "1" if name in TEXT_NAMES or name.endswith("_id") else 1


@pytest.fixture
async def driver(postgres: PostgresServer) -> AsyncIterator[PostgresDriver]:
    made = PostgresDriver(parse_target(postgres.url), StateOptions())
    yield made
    await made.aclose()


@pytest.fixture
async def texts(place: Place) -> Texts:
    """Give the statements for tables that exist."""
    async with place.open():
        return await asyncio.to_thread(load_texts, "postgres", place.prefix)


def run_texts(texts: Texts) -> dict[str, str]:
    """Return what is run, those for places that are named by their keys among them."""
    by_encoded = {
        f"{name} by key": text
        for name, text in texts.by_encoded.items()
        if text != texts.statements[name] and not name.startswith(("entries.", "summaries."))
    }
    found = {**texts.statements, **by_encoded}
    return {
        name: text.replace(":message_ids", ":id_0, :id_1").replace(":conditions", "true")
        for name, text in found.items()
        if text.startswith(RUN) and not name.endswith(PARTS) and name not in READS_ALL
    }


async def plan_of(
    driver: PostgresDriver, options: str, text: str, values: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the nodes of the plan of a statement, where a small table is no reason to scan it."""
    explain = f"EXPLAIN ({options}FORMAT JSON) {text}"
    answers = await driver.batch([("SET LOCAL enable_seqscan = off", {}), (explain, values)])
    return list(nodes_of(json.loads(str(answers[1][0][0]))[0]["Plan"]))


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes_of(child)


def is_unbounded(node: dict[str, Any]) -> bool:
    """Tell whether a node reads a table, and as much as there is."""
    if "Relation Name" not in node and node["Node Type"] not in BY_INDEX:
        return False
    if "Scan" not in node["Node Type"]:
        return False
    return node["Node Type"] not in BY_INDEX or not {"Index Cond", "Recheck Cond"} & set(node)


@pytest.mark.service
async def test_no_statement_reads_a_whole_table(texts: Texts, driver: PostgresDriver) -> None:
    found = run_texts(texts)
    unbounded = {
        name
        for name, text in found.items()
        if any(map(is_unbounded, await plan_of(driver, "", text, OneForEach())))
    }
    assert unbounded == set()
    assert len(found) > 60


@pytest.mark.service
@pytest.mark.parametrize("name", QUERIES)
async def test_a_window_costs_the_same_whatever_the_history_holds(
    place: Place, texts: Texts, driver: PostgresDriver, name: str
) -> None:
    touched = []
    for first, last in ((1, 100), (101, 5000)):
        await asyncio.to_thread(fill, place, first, last)
        values = {**BOUNDS, **QUERIES[name]}
        nodes = await plan_of(driver, "ANALYZE, ", texts[name], values)
        scans = [node for node in nodes if "Index Name" in node]
        touched.append(
            sum(int(node["Actual Rows"]) + node.get("Rows Removed by Filter", 0) for node in scans)
        )
    assert 0 < touched[1] <= touched[0] * 1.2


def fill(place: Place, first: int, last: int) -> None:
    place.query(FILL.replace("first", str(first)).replace("last", str(last)))
    place.query("ANALYZE $rows")


@pytest.mark.service
async def test_a_message_id_is_stored_once_in_a_conversation(
    texts: Texts, driver: PostgresDriver
) -> None:
    values = {**OneForEach(), **dict.fromkeys(re.findall(r"\w+", ROW), "1"), "message_id": "m1"}
    await driver.batch([(texts["rows.insert"], {**values, "id": 1})])
    with pytest.raises(StateConflictError):
        await driver.batch([(texts["rows.insert"], {**values, "id": 2})])


@pytest.mark.service
async def test_a_block_of_numbers_is_as_large_as_the_state_takes_it(
    texts: Texts, driver: PostgresDriver
) -> None:
    values: dict[str, Value] = {"count": BLOCK, "encoded": "x"}
    for name in ("counters.reserve_conversations", "counters.reserve_sessions"):
        taken = [await driver.execute(texts[name], values) for _ in range(3)]
        assert taken == [[[BLOCK]], [[2 * BLOCK]], [[3 * BLOCK]]]


@pytest.mark.service
@given(values=st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.text())))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_values_come_back_as_they_were(
    postgres: PostgresServer, values: list[int | str | None]
) -> None:
    async def ask() -> object:
        driver = PostgresDriver(parse_target(postgres.url), StateOptions())
        kinds = ["bigint" if isinstance(value, int) else "text" for value in values]
        text = ", ".join(f":v{n}::{kind}" for n, kind in enumerate(kinds)) or "NULL"
        [[row], [fixed]] = await driver.batch(
            [
                (f"SELECT {text}", {f"v{n}": value for n, value in enumerate(values)}),
                ("SELECT :a::bytea, :b::float8, true, NULL", {"a": b"\0\xff", "b": 0.1}),
            ]
        )
        await driver.aclose()
        assert fixed == [b"\0\xff", 0.1, True, None]
        return row

    assert asyncio.run(ask()) == (values or [None])


@pytest.mark.parametrize("prefix", ["", "a-b_", "1a", "a b", "a;b", 'a"', "ä"])
def test_a_prefix_that_is_no_name_is_never_formatted_into_sql(prefix: str) -> None:
    for load in (load_statements, load_migrations):
        with pytest.raises(ConfigError, match=r"state\.table_prefix"):
            load("postgres", prefix)


def test_every_value_of_a_statement_is_a_parameter() -> None:
    literals = {
        each
        for name, text in TEXTS.statements.items()
        if not name.startswith("admin.")
        for each in text.split("'")[1::2]
    }
    assert literals == {
        *("waiting", "running", "recorded", "ended", "lost", "pending"),
        *("hidden", "superseded", "", "UTF8", "floor", "lock:", "conversation:"),
        *("p_schema", "p_requests_schema", "p_conversation_numbers", "p_session_numbers"),
        *("anchor", "rolling"),
        *("base", "id", "newer", "older", "{}", r'.*"message_id": ?("(?:[^"\\]|\\.)*")'),
    }


def test_every_name_fits_with_the_longest_prefix() -> None:
    prefix = "p" * 32
    names = set[str]()
    texts = load_texts("postgres", prefix)
    for migration in (*texts.migrations, *texts.migrations_for_requests):
        names |= set(re.findall(rf"{prefix}\w+", " ".join(migration.statements)))
    assert max(map(len, names)) <= 63


def test_a_cast_is_no_parameter_and_a_hash_is_made_of_its_value() -> None:
    text = "SELECT :a::text LIKE '%' AND b_hash = :b_hash AND c = :c_hash_1 AND a = :a"
    values: dict[str, Value] = {"a": 1, "b": "x", "c_1": None}
    assert command_of(text, values) == (
        b"SELECT $1::text LIKE '%' AND b_hash = $2 AND c = $3 AND a = $1",
        [b"1", hash_of("x").encode(), hash_of(None).encode()],
    )


def test_nothing_has_another_hash_than_any_text() -> None:
    assert len({hash_of(each) for each in (None, "", "None", "\xff", "-")}) == 5
    assert hash_of("é") == rf"\x{hashlib.sha256('é'.encode()).hexdigest()}"


@pytest.mark.parametrize("text", ["", "a", "\0", "\x1a", "\x1as", "\x1a0", "s\0\x1a\0", "é\0🙂"])
def test_every_text_comes_back_and_none_is_stored_with_nul(text: str) -> None:
    assert restore(escape(text)) == text
    assert "\0" not in escape(text)
