"""Search in stored messages."""

from __future__ import annotations

import pytest

from tests.cli.helpers import STATE, Invoke, document, failure, store


def threads(page: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [item["conversation"]["thread"] for item in page["items"]]


def test_messages_of_all_conversations_are_found(support: str, invoke: Invoke) -> None:
    store("Green tea", "milk", thread="t1")
    store("Tea, 茶", thread="t2")
    page = document(invoke("search", "TEA", support, "--json"))
    assert threads(page) == ["t2", "t1"]
    item = page["items"][1]
    assert (item["message_id"], item["seq"], item["role"]) == ("t1-1", 1, "user")
    assert (item["snippet"], item["score"]) == ("Green **tea**", 1)
    assert document(invoke("search", "茶", support, "--limit", "1", "--json"))["items"]


def test_a_place_a_role_and_times_narrow_the_search(support: str, invoke: Invoke) -> None:
    store("tea", thread="t1", session_id="s1")
    store("tea", thread="t2")
    for narrowed, expected in (
        (["--thread", "t2"], ["t2"]),
        (["--session", "s1"], ["t1"]),
        (["--role", "assistant"], []),
        (["--before", "2000-01-01"], []),
        (["--after", "2000-01-01", "--thread", "t1"], ["t1"]),
        (["--tenant", "other"], []),
    ):
        assert threads(document(invoke("search", "tea", support, *narrowed, "--json"))) == expected


def test_people_see_where_a_hit_is(support: str, invoke: Invoke) -> None:
    store("tea \x1b[2J\nfor two", thread="t1")
    result = invoke("search", "two tea", support)
    assert result.exit_code == 0
    head, snippet = result.stdout.splitlines()
    assert head.startswith("#1  user  ")
    assert head.endswith("agent 'support', thread 't1'  message 't1-1'")
    assert snippet == "    **tea** \\x1b[2J for **two**"
    assert invoke("search", "coffee", support).stderr == "nothing found\n"


def test_a_bare_state_is_searched(support: str, invoke: Invoke) -> None:
    store("tea")
    assert support
    found = invoke("search", "tea", "--state", STATE, "--agent", "support", "--json")
    assert threads(document(found)) == ["cli"]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "code"),
    [
        (["tea", "--limit", "51"], 2, "usage"),
        (["tea", "--before", "yesterday"], 2, "usage"),
        (["tea", "--channel", "c1"], 2, "usage"),
        (["tea", "--session", "s9"], 4, "not_found"),
    ],
)
def test_a_search_that_cannot_be_is_refused(
    support: str, invoke: Invoke, arguments: list[str], exit_code: int, code: str
) -> None:
    store("tea")
    query, *options = arguments
    result = invoke("search", query, support, *options, "--json")
    assert (result.exit_code, failure(result)["code"]) == (exit_code, code)
