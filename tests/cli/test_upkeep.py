"""Looking after a store by the command."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.helpers import Invoke, document, failure, store

URL = "file:state.db"


def change(sql: str) -> None:
    with closing(sqlite3.connect("state.db")) as connection, connection:
        connection.execute(sql.replace("$", "vitehub_agent_state_"))


@pytest.mark.usefixtures("folder")
def test_facts_of_a_store(invoke: Invoke) -> None:
    store("hi")
    found = document(invoke("state", "info", "--state", URL, "--json"))
    assert found["schema_version"] == found["newest_version"]
    assert (found["counts"]["rows"], found["counts"]["sessions"]) == (1, 1)
    assert (found["retention"], found["size"] > 0) == (None, True)
    told = invoke("state", "info", "--state", URL).stdout
    assert "retention: none\n" in told
    assert "  rows: 1\n" in told


@pytest.mark.usefixtures("folder")
def test_the_store_of_the_environment_is_looked_after(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    store("hi")
    monkeypatch.setenv("VITEHUB_AGENT_STATE_URL", URL)
    assert document(invoke("state", "info", "--json"))["counts"]["rows"] == 1
    monkeypatch.delenv("VITEHUB_AGENT_STATE_URL")
    assert failure(invoke("state", "info", "--json"))["code"] == "usage"


def test_nothing_is_created_but_by_a_migration(folder: Path, invoke: Invoke) -> None:
    for command in ("info", "cleanup", "check-integrity"):
        result = invoke("state", command, "--state", URL, "--json")
        assert (result.exit_code, failure(result)["code"]) == (4, "not_found")
    plan = document(invoke("state", "migrate", "--dry-run", "--state", URL, "--json"))
    assert (plan["from_version"], plan["done"]) == (0, False)
    assert list(folder.glob("state.db*")) == []
    done = document(invoke("state", "migrate", "--state", URL, "--json"))
    assert (done["from_version"], done["to_version"]) == (0, plan["to_version"])
    again = document(invoke("state", "migrate", "--dry-run", "--state", URL, "--json"))
    assert again["from_version"] == again["to_version"]


@pytest.mark.usefixtures("folder")
def test_what_is_damaged_exits_with_1(invoke: Invoke) -> None:
    store("hi")
    assert document(invoke("state", "check-integrity", "--state", URL, "--json")) == {
        "rows": 1,
        "problems": {},
    }
    change("UPDATE $rows SET body = '{' WHERE role = 'user'")
    result = invoke("state", "check-integrity", "--state", URL)
    assert result.exit_code == 1
    assert "  unreadable_rows: 1\n" in result.stdout


@pytest.mark.usefixtures("folder")
def test_what_has_expired_is_removed(invoke: Invoke) -> None:
    store("hi")
    change("UPDATE $rows SET expires_at = 1")
    result = invoke("state", "cleanup", "--state", URL)
    assert result.exit_code == 0
    assert document(invoke("state", "info", "--state", URL, "--json"))["counts"]["rows"] == 0


@pytest.mark.usefixtures("folder")
def test_tables_are_dropped_only_by_who_says_yes(invoke: Invoke) -> None:
    store("hi")
    refused = invoke("state", "drop", "--state", URL, "--json")
    assert (refused.exit_code, failure(refused)["code"]) == (2, "usage")
    assert document(invoke("state", "info", "--state", URL, "--json"))["counts"]["rows"] == 1
    dropped = document(invoke("state", "drop", "--yes", "--state", URL, "--json"))
    assert dropped["dropped"]["rows"] == 1
    assert invoke("state", "info", "--state", URL).exit_code == 4
