"""Values on a real libSQL server: what goes in comes out, and what cannot is refused."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator

import pytest

from tests.providers.libsql_helpers import driving
from tests.providers.sqld_server import SqldServer
from vitehub_chat.errors import InputError, StateConflictError, StateError
from vitehub_chat.state.providers.libsql.driver import LibsqlDriver
from vitehub_chat.state.providers.libsql.limits import CAPABILITIES
from vitehub_chat.state.sql.driver import Value

pytestmark = pytest.mark.service


@pytest.fixture
async def driver(sqld: SqldServer) -> AsyncIterator[LibsqlDriver]:
    async with driving(sqld.url) as driver:
        await driver.execute("DROP TABLE IF EXISTS things", {})
        await driver.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, value UNIQUE)", {})
        yield driver


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        -1,
        2**53 + 1,
        2**63 - 1,
        -(2**63),
        0.1,
        1.0,
        -1.5e308,
        5e-324,
        "",
        "a\0b\0",
        "\0",
        "né 😀 \u202e \ufeff \uffff \U0010ffff",
        "'; DROP TABLE things; --",
        '\\u0000 \\" \r\n\t\x1f\x7f',
        b"",
        b"\0\xff" * 3,
        bytes(range(256)),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_a_value_comes_back_as_it_was(driver: LibsqlDriver, value: Value) -> None:
    await driver.execute("INSERT INTO things (value) VALUES (:value)", {"value": value})
    [row] = await driver.execute("SELECT value, :value FROM things", {"value": value})

    assert row == (value, value)
    assert [type(each) for each in row] == [type(value)] * 2


async def test_facts_are_numbers(driver: LibsqlDriver) -> None:
    assert await driver.execute("SELECT :yes, :no", {"yes": True, "no": False}) == [(1, 0)]


async def test_values_that_a_statement_does_not_use_are_left_away(driver: LibsqlDriver) -> None:
    sql = "SELECT :used, ':quoted', \":quoted\" /* :commented */ -- :commented"
    named: dict[str, Value] = {"used": 1, "unused": 2, "quoted": 3, "commented": 4}

    assert await driver.execute(sql, named) == [(1, ":quoted", ":quoted")]


@pytest.mark.parametrize("size", [1_000_001, CAPABILITIES.max_value_bytes])
async def test_a_large_value_comes_back(driver: LibsqlDriver, size: int) -> None:
    await driver.execute("INSERT INTO things (value) VALUES (:text)", {"text": "é" * (size // 2)})
    [row] = await driver.execute("SELECT value FROM things", {})

    assert row == ("é" * (size // 2),)


@pytest.mark.parametrize(
    "value",
    [2**63, -(2**63) - 1, float("inf"), float("nan"), "\ud800", [1], object()],
    ids=lambda value: repr(value)[:20],
)
async def test_what_is_no_value_is_refused_before_sending(value: Value) -> None:
    async with driving("http://127.0.0.1:9") as driver:
        with pytest.raises(InputError, match="'body'"):
            await driver.execute("SELECT :body", {"body": value})


async def test_a_row_that_is_too_large_is_a_typed_error(driver: LibsqlDriver) -> None:
    with pytest.raises(StateError, match="a value is larger") as caught:
        await driver.execute(
            "INSERT INTO things (value) VALUES (:half || :half)", {"half": "x" * 3_000_000}
        )

    assert caught.value.code == "too_large"


async def test_a_constraint_is_a_conflict(driver: LibsqlDriver) -> None:
    insert = "INSERT INTO things (value) VALUES (:value)"
    await driver.execute(insert, {"value": "s3cret"})
    with pytest.raises(StateConflictError) as caught:
        await driver.execute(insert, {"value": "s3cret"})

    assert "UNIQUE constraint failed: things.value" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    "sql",
    [
        "SELEC s3cret",
        "SELECT * FROM nowhere WHERE s3cret = 's3cret'",
        "SELECT json_extract('{s3cret', '$')",
        "SELECT :missing",
        "SELECT 1; SELECT 2",
    ],
)
async def test_a_refused_statement_is_a_state_error_without_its_values(
    driver: LibsqlDriver, sql: str
) -> None:
    with pytest.raises(StateError) as caught:
        await driver.execute(sql, {})

    assert type(caught.value) is StateError
    assert "s3cret" not in "".join(traceback.format_exception(caught.value)).replace(sql, "")


@pytest.mark.parametrize("sql", ["VACUUM", "PRAGMA secure_delete = ON"])
async def test_the_server_neither_vacuums_nor_overwrites_as_the_guide_says(
    driver: LibsqlDriver, sql: str
) -> None:
    with pytest.raises(StateError):
        await driver.execute(sql, {})

    assert await driver.execute("PRAGMA secure_delete", {}) == [(0,)]
