"""Sessions of an agent."""

from __future__ import annotations

from tests.cli.helpers import Invoke, document, failure, store


def threads(page: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [item["conversation"]["thread"] for item in page["items"]]


def test_sessions_are_listed_by_newest_activity(support: str, invoke: Invoke) -> None:
    store("a", "b", thread="t1")
    store("c", thread="t2")
    page = document(invoke("sessions", support, "--json"))
    assert threads(page) == ["t2", "t1"]
    assert page["items"][1]["message_count"] == 2
    assert page["items"][1]["conversation"] == {"agent": "support", "thread": "t1"}
    assert "next_cursor" not in page


def test_a_cursor_leads_to_the_next_page(support: str, invoke: Invoke) -> None:
    for thread in ("t1", "t2", "t3"):
        store("a", thread=thread)
    first = document(invoke("sessions", support, "--limit", "2", "--json"))
    second = document(invoke("sessions", support, "--cursor", first["next_cursor"], "--json"))
    assert (threads(first), threads(second)) == (["t3", "t2"], ["t1"])
    assert threads(document(invoke("sessions", support, "--all", "--json"))) == ["t3", "t2", "t1"]


def test_a_thread_or_a_session_narrows_the_list(support: str, invoke: Invoke) -> None:
    store("a", thread="t1", session_id="s1")
    store("b", thread="t2")
    assert threads(document(invoke("sessions", support, "--thread", "t2", "--json"))) == ["t2"]
    assert threads(document(invoke("sessions", support, "--session", "s1", "--json"))) == ["t1"]


def test_an_unknown_session_exits_with_4(support: str, invoke: Invoke) -> None:
    result = invoke("sessions", support, "--session", "s9", "--json")
    assert (result.exit_code, failure(result)["code"]) == (4, "not_found")


def test_a_channel_alone_is_no_address(support: str, invoke: Invoke) -> None:
    assert invoke("sessions", support, "--channel", "c1").exit_code == 2


def test_people_see_a_table(support: str, invoke: Invoke) -> None:
    store("a", thread="t1", channel="c1", session_id="s1")
    head, line = invoke("sessions", support).stdout.splitlines()
    assert head.split() == ["last", "message", "messages", "channel", "thread", "session", "title"]
    assert line.split()[1:] == ["1", "c1", "t1", "s1", "-"]


def test_without_sessions_there_is_no_table(support: str, invoke: Invoke) -> None:
    result = invoke("sessions", support)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no sessions\n")
