"""Stored messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import STATE, Invoke, document, failure, store, texts_of


def test_history_is_the_newest_page_ascending(support: str, invoke: Invoke) -> None:
    store("one", "two", "three")
    page = document(invoke("history", support, "--limit", "2", "--json"))
    assert texts_of(page) == ["two", "three"]
    assert (page["at_live_edge"], page["live_edge_seq"], page["next_cursor"]) == (
        True,
        3,
        page["older_cursor"],
    )
    item = page["items"][0]
    assert (item["seq"], sorted(item)) == (
        2,
        ["created_at", "cursor", "message", "seq", "status", "turn_no"],
    )


def test_cursors_walk_there_and_back(support: str, invoke: Invoke) -> None:
    store("one", "two", "three")
    newest = document(invoke("history", support, "--limit", "2", "--json"))
    oldest = document(invoke("history", support, "--cursor", newest["older_cursor"], "--json"))
    assert (texts_of(oldest), oldest["older_cursor"]) == (["one"], None)
    back = invoke(
        "history", support, "--cursor", oldest["newer_cursor"], "--direction", "newer", "--json"
    )
    assert texts_of(document(back)) == ["two", "three"]


def test_all_pages_are_one_document(support: str, invoke: Invoke) -> None:
    texts = [f"message {n}" for n in range(230)]
    store(*texts)
    page = document(invoke("history", support, "--all", "--json"))
    assert (texts_of(page), page["older_cursor"]) == (texts, None)


def test_people_see_messages_and_where_to_go_on(support: str, invoke: Invoke) -> None:
    store("one", "two\nlines \x1b[2J")
    result = invoke("history", support, "--limit", "1")
    assert result.exit_code == 0
    head, *lines = result.stdout.splitlines()
    assert (head.split()[:2], lines) == (["#2", "user"], ["    two", "    lines \\x1b[2J"])
    assert "agent 'support', thread 'cli'" in result.stderr
    assert "--cursor " in result.stderr


def test_a_session_is_found_where_it_began(support: str, invoke: Invoke) -> None:
    store("mine", thread="t1", channel="c1", session_id="s1")
    found = document(invoke("history", support, "--channel", "c1", "--session", "s1", "--json"))
    assert texts_of(found) == ["mine"]


@pytest.mark.parametrize(
    "address", [["--thread", "t9"], ["--session", "s9"], ["--tenant", "other"], ["--channel", "c9"]]
)
def test_a_conversation_that_is_not_there_exits_with_4(
    support: str, invoke: Invoke, address: list[str]
) -> None:
    store("one")
    result = invoke("history", support, *address, "--json")
    assert (result.exit_code, failure(result)["code"]) == (4, "not_found")


def test_a_foreign_cursor_exits_with_2(support: str, invoke: Invoke) -> None:
    store("one")
    result = invoke("history", support, "--cursor", "AAAA", "--json")
    assert (result.exit_code, failure(result)["code"]) == (2, "invalid_cursor")


def test_a_cursor_beside_all_exits_with_2(support: str, invoke: Invoke) -> None:
    assert invoke("history", support, "--all", "--cursor", "AAAA").exit_code == 2


@pytest.mark.usefixtures("folder")
def test_a_state_can_be_read_without_a_definition(invoke: Invoke) -> None:
    store("one")
    page = document(invoke("history", "--state", STATE, "--agent", "support", "--json"))
    assert texts_of(page) == ["one"]


@pytest.mark.usefixtures("folder")
def test_the_environment_names_a_state(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    store("one")
    monkeypatch.setenv("VITEHUB_AGENT_STATE_URL", STATE)
    assert texts_of(document(invoke("history", "--agent", "support", "--json"))) == ["one"]


@pytest.mark.usefixtures("folder")
def test_without_a_definition_the_agent_has_to_be_named(invoke: Invoke) -> None:
    result = invoke("history", "--state", STATE, "--json")
    assert (result.exit_code, failure(result)["code"]) == (2, "usage")
    assert invoke("history", "--agent", "support").exit_code == 2


def test_reading_a_state_by_url_does_not_create_it(folder: Path, invoke: Invoke) -> None:
    result = invoke("history", "--state", STATE, "--agent", "support", "--json")
    assert (result.exit_code, failure(result)["code"]) == (4, "not_found")
    assert list(folder.iterdir()) == []
