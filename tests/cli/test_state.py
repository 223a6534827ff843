"""Checking a store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helpers import Invoke, document, failure, store
from vitehub_chat import plugins
from vitehub_chat.state.memory.summaries import MemorySummaries
from vitehub_chat.testing import all_checks, conformance

FEW = {"lifecycle.rows_survive_reopening", "summaries.the_last_summary_counts"}


def tables_of(path: Path) -> dict[str, int]:
    """Return the tables of a file, without SQLite's own, and how many rows each has."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
        ).fetchall()
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]  # noqa: S608
            for (name,) in names
        }


@pytest.fixture
def few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a few checks, for what does not depend on all of them."""
    few = [each for each in all_checks() if each.name in FEW]
    monkeypatch.setattr(conformance, "all_checks", lambda: few)


@contextmanager
def forgetting_summaries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Break one rule in memory."""
    with monkeypatch.context() as patched:
        patched.setattr(MemorySummaries, "put", lambda _self, _summary: None)
        yield


@pytest.mark.slow
def test_a_file_is_checked_beside_its_own_tables(folder: Path, invoke: Invoke) -> None:
    store("hi")
    before = tables_of(folder / "state.db")
    found = document(invoke("state", "check", "--state", "file:state.db", "--json"))
    assert found["counts"] == {"ok": len(all_checks())}
    assert found["checks"][0] == {"name": all_checks()[0].name, "outcome": "ok"}
    assert tables_of(folder / "state.db") == before


@pytest.mark.usefixtures("folder", "few_checks")
def test_what_is_skipped_is_named_with_its_feature(invoke: Invoke) -> None:
    result = invoke("state", "check", "--state", "memory:")
    assert result.exit_code == 0
    lines = {line.split()[0]: line.split() for line in result.stdout.splitlines()}
    reason = lines["lifecycle.rows_survive_reopening"][1:]
    assert reason == ["skipped", "lacks", "durable"]
    assert result.stdout.splitlines()[-1] == "1 ok, 1 skipped"


@pytest.mark.usefixtures("folder", "few_checks")
def test_a_broken_rule_exits_with_1_and_is_told(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forgetting_summaries(monkeypatch):
        result = invoke("state", "check", "--state", "memory:")
        as_json = invoke("state", "check", "--state", "memory:", "--json")
    assert (result.exit_code, as_json.exit_code) == (1, 1)
    assert "failed: summaries.the_last_summary_counts" in result.stderr
    why = "the summary: None, expected Summary("
    line = next(each for each in result.stdout.splitlines() if "the_last_summary" in each)
    assert why in line
    assert why in as_json.stdout


@pytest.mark.usefixtures("folder", "few_checks")
def test_the_url_may_come_from_the_environment(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITEHUB_AGENT_STATE_URL", "memory:")
    found = document(invoke("state", "check", "--json"))
    assert found["counts"] == {"ok": 1, "skipped": 1}
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("folder")
def test_without_a_url_nothing_is_checked(invoke: Invoke) -> None:
    result = invoke("state", "check", "--json")
    assert (result.exit_code, failure(result)["code"]) == (2, "usage")


@pytest.mark.usefixtures("folder", "few_checks")
def test_a_provider_that_cannot_drop_its_tables_is_refused(invoke: Invoke) -> None:
    opened: list[str] = []

    class Other:
        async def __aenter__(self) -> None:
            opened.append("opened")

    def create(_url: str, **_options: Any) -> Other:
        return Other()

    with plugins.state_providers.using(other=create):
        result = invoke("state", "check", "--state", "other:x", "--json")
    assert (result.exit_code, failure(result)["path"], opened) == (3, "state.url", [])
