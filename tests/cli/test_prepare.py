"""What the next call would see."""

from __future__ import annotations

import json
import typing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helpers import STATE, Invoke, document, failure, store
from vitehub_chat.conversation.reasons import REASONS
from vitehub_chat.model.results import SelectionReason

THREAD_AGENT = """
name = "support"
driver = "echo"
[[capabilities]]
use = "chat"
triggerHistory = { source = "thread", maxMessages = 2 }
"""

SESSIONS = """
sessions = { strategy = "hybrid", idleTimeoutMs = 60000 }
"""


def say(text: str, **fields: object) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "text": text}], **fields}


def verdicts(entries: list[dict[str, Any]]) -> list[tuple[int | None, bool, str]]:
    return [(each.get("seq"), each["kept"], each["reason"]) for each in entries]


def test_every_reason_has_a_sentence_of_its_own() -> None:
    assert set(REASONS) == set(typing.get_args(SelectionReason))
    assert len(set(REASONS.values())) == len(REASONS)


def test_the_messages_are_those_that_the_driver_gets(support: str, invoke: Invoke) -> None:
    store("one", "two", "three", "four")
    found = document(invoke("prepare", support, "--prompt", "five", "--json"))
    texts = [message["parts"][0]["text"] for message in found["messages"]]
    assert texts == ["two", "three", "four", "five"]
    ran = document(invoke("run", support, "--prompt", "five", "--json"))
    assert ran["text"] == "You said: five (3 earlier messages)"


def test_every_other_stored_message_has_a_reason(support: str, invoke: Invoke) -> None:
    store("one", "two", "three", "four")
    found = document(invoke("prepare", support, "--prompt", "five", "--json"))
    assert verdicts(found["unread"]) == [(1, False, "over_count")]
    assert verdicts(found["selection"]) == [
        (2, True, "window"),
        (3, True, "window"),
        (4, True, "window"),
        (None, True, "current"),
    ]
    assert found["unread"][0]["why"] == REASONS["over_count"]


def test_without_a_window_nothing_stored_is_seen(folder: Path, invoke: Invoke) -> None:
    store("one")
    (folder / "alone.json").write_text(
        json.dumps({"name": "support", "state": STATE, "capabilities": ["chat"]})
    )
    found = document(invoke("prepare", "alone.json", "--prompt", "two", "--json"))
    assert verdicts(found["unread"]) == [(1, False, "no_window")]


def test_messages_of_another_session_are_told_apart(
    folder: Path, support: str, invoke: Invoke
) -> None:
    store("one", session_id="s1")
    path = folder / support
    path.write_text(path.read_text() + SESSIONS)
    found = document(invoke("prepare", support, "--session", "s2", "--json"))
    assert verdicts(found["unread"]) == [(1, False, "other_session")]
    assert found["session_id"] == "s2"


def test_more_rows_than_can_be_listed_are_counted_out(support: str, invoke: Invoke) -> None:
    store(*(f"message {n}" for n in range(105)))
    found = document(invoke("prepare", support, "--json"))
    assert found["unread_below_seq"] == 6
    assert [entry["seq"] for entry in found["unread"]] == list(range(6, 103))
    assert "Stored rows below seq 6 are not listed." in invoke("prepare", support).stdout


def test_a_dry_run_stores_nothing(support: str, invoke: Invoke) -> None:
    store("one")
    first = document(invoke("prepare", support, "--prompt", "two", "--json"))
    assert document(invoke("prepare", support, "--prompt", "two", "--json")) == first
    assert len(document(invoke("history", support, "--json"))["items"]) == 1


def test_people_see_a_table_then_the_messages(support: str, invoke: Invoke) -> None:
    store("one", "two", "three", "four")
    result = invoke("prepare", support, "--prompt", "five")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "agent    support",
        "",
        "seq  role  id     kept  reason      why",
        "1    user  cli-1  no    over_count  the newer ones fill max_messages",
        "2    user  cli-2  yes   window      inside the window",
        "3    user  cli-3  yes   window      inside the window",
        "4    user  cli-4  yes   window      inside the window",
        "-    user  -      yes   current     the message that is answered",
        "",
        "The driver gets 4 messages:",
        "",
        "1. user  cli-2",
        "    two",
        "",
        "2. user  cli-3",
        "    three",
        "",
        "3. user  cli-4",
        "    four",
        "",
        "4. user  ui-3",
        "    five",
    ]


def test_off_a_terminal_no_text_is_shortened(support: str, invoke: Invoke) -> None:
    long = "x" * 10_000
    assert long in invoke("prepare", support, "--prompt", long).stdout


def test_control_characters_of_messages_are_escaped(support: str, invoke: Invoke) -> None:
    store("\x1b]0;evil\x07\nseq  role")
    shown = invoke("prepare", support, "--prompt", "\x9b2J").stdout
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "    \\x1b]0;evil\\x07\n    seq  role\n" in shown


def test_an_input_is_read_from_a_file_or_from_stdin(folder: Path, invoke: Invoke) -> None:
    (folder / "thread.toml").write_text(THREAD_AGENT)
    given = json.dumps({"messages": [say("a", id="1"), say("b", id="2"), say("c", id="3")]})
    (folder / "input.json").write_text(given)
    found = document(invoke("prepare", "thread.toml", "--input", "input.json", "--json"))
    assert verdicts(found["selection"]) == [
        (None, False, "over_count"),
        (None, True, "window"),
        (None, True, "current"),
    ]
    assert found == document(
        invoke("prepare", "thread.toml", "--input", "-", "--json", stdin=given)
    )


def test_options_replace_the_address_of_an_input(support: str, invoke: Invoke) -> None:
    store("there", thread="t2")
    given = json.dumps({"messages": [say("a")], "run": {"threadId": "t1", "origin": "portal"}})
    result = invoke("prepare", support, "--input", "-", "--thread", "t2", "--json", stdin=given)
    found = document(result)
    assert found["run"] == {"thread_id": "t2", "origin": "portal"}
    assert [message["id"] for message in found["messages"]] == ["t2-1", "ui-1"]


@pytest.mark.parametrize("run", [{}, {"run": {"origin": "portal"}}, {"run": {"threadId": None}}])
def test_an_input_without_a_thread_is_of_that_of_the_command(
    support: str, invoke: Invoke, run: dict[str, object]
) -> None:
    store("there", thread="cli")
    given = json.dumps({"messages": [say("a")], **run})
    found = document(invoke("prepare", support, "--input", "-", "--json", stdin=given))
    assert found["run"]["thread_id"] == "cli"
    assert [message["id"] for message in found["messages"]] == ["cli-1", "ui-1"]


@pytest.mark.parametrize("given", ["{", "[]", "NaN", "\ud800", "[" * 100_000, '{"run": 3}'])
def test_an_input_that_is_no_json_object_exits_with_2(
    support: str, invoke: Invoke, given: str
) -> None:
    stdin = given.encode("utf-8", "surrogatepass")
    result = invoke("prepare", support, "--input", "-", "--json", stdin=stdin)
    assert (result.exit_code, failure(result)["code"]) == (2, "invalid_input")


def test_input_and_prompt_exclude_each_other(support: str, invoke: Invoke) -> None:
    result = invoke("prepare", support, "--input", "-", "--prompt", "x", stdin="{}")
    assert result.exit_code == 2


def test_what_a_definition_prints_is_not_in_the_document(folder: Path, invoke: Invoke) -> None:
    (folder / "loud.py").write_text(
        "from vitehub_chat import chat, define_agent\n"
        "print('loaded')\n"
        "agent = define_agent(name='loud', driver='echo', capabilities=[chat()])\n"
    )
    result = invoke("prepare", "loud.py", "--json")
    assert result.stderr == "loaded\n"
    assert json.loads(result.stdout)["selection"][0]["reason"] == "current"


CONDENSING = """
name = "support"
driver = "echo"
state = "file:state.db"
[[capabilities]]
use = "chat"
triggerHistory = { source = "transcript", maxMessages = 50 }
context = { estimator = "runes", limit = 300, minVerbatim = 1, frameOverhead = 0, retries = 0 }
"""


def test_budget_and_reasons_are_shown_for_roll_and_trim(folder: Path, invoke: Invoke) -> None:
    (folder / "support.toml").write_text(CONDENSING)
    for number in range(3):
        text = f"{number} " + "x" * 58
        assert invoke("run", "support.toml", "--prompt", text).exit_code == 0
    found = document(invoke("prepare", "support.toml", "--prompt", "y" * 100, "--json"))
    reasons = [
        (entry["seq"], entry["reason"]) for entry in found["unread"] + found["selection"][:-1]
    ]
    assert [seq for seq, _ in reasons] == list(range(1, 7))
    assert {reason for _, reason in reasons} == {"rolled", "trimmed", "window"}
    budget = found["context_budget"]
    assert (budget["limit"], budget["over"], budget["unit"]) == (300, False, "runes")
    assert budget["summary_through_seq"] == max(s for s, reason in reasons if reason == "rolled")
    assert budget["trimmed"] == [reason for _, reason in reasons].count("trimmed")
    assert found["system"].startswith("<conversation-summary>")
    shown = invoke("prepare", "support.toml", "--prompt", "y" * 100).stdout
    assert f"budget   {budget['used']} of 300 runes ({budget['used_pct']} %)" in shown
    assert f"summary  of the rows up to seq {budget['summary_through_seq']}" in shown
    assert f"trimmed  {budget['trimmed']} of the oldest" in shown
