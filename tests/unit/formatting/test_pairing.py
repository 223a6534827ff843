"""Expanding, blanks and the pairing of calls and results."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.formatting.said import assistant, call, failed, message, result, text, tool, user
from vitehub_chat.formatting.normaliser.pipeline import normalise
from vitehub_chat.formatting.options import FormatOptions
from vitehub_chat.formatting.profiles import PROFILES
from vitehub_chat.formatting.reading import read_turns
from vitehub_chat.formatting.turns import turns_to_json

INTERRUPTED = "Interrupted: this tool call has no result."


def told(*messages: Any, live_frontier: bool = False) -> list[Any]:
    """Return role and parts in short: texts, `id?` of a call, `id=output` or `id!error`."""
    options = FormatOptions(live_frontier=live_frontier)
    turns = normalise(read_turns(messages), PROFILES["openai_chat"], options)
    return [
        (turn["role"], *(_short(part) for part in turn["parts"])) for turn in turns_to_json(turns)
    ]


def _short(part: dict[str, Any]) -> str:
    if part["type"] == "tool-call":
        return f"{part['id']}?"
    if part["type"] == "tool-result":
        return f"{part['id']}={part['output']}" if "output" in part else f"{part['id']}!"
    return str(part["text"])


def test_results_in_an_answer_become_messages_behind_it() -> None:
    answer = assistant(call("c1"), result("c1", 1), call("c2"), result("c2", 2))
    assert told(answer) == [("assistant", "c1?", "c2?"), ("tool", "c1=1"), ("tool", "c2=2")]


def test_an_answer_is_split_where_text_follows_a_result() -> None:
    answer = assistant("look", call("c1"), result("c1", 1), " ", call("c2"), result("c2", 2), "so")
    assert told(answer) == [
        ("assistant", "look", "c1?", "c2?"),
        ("tool", "c1=1"),
        ("tool", "c2=2"),
        ("assistant", "so"),
    ]


def test_data_and_approvals_are_dropped() -> None:
    said = user("a", {"type": "data-x", "data": 1})
    asked = assistant(call("c1"), {"type": "approval-request", "id": "p", "callId": "c1"})
    assert told(said, asked)[:2] == [("user", "a"), ("assistant", "c1?")]


def test_blank_texts_beside_calls_are_dropped() -> None:
    assert told(assistant("  ", call("c1")), tool(result("c1")))[0] == ("assistant", "c1?")


def test_a_call_id_used_again_gets_the_next_free_number() -> None:
    assert told(
        assistant(call("c")),
        tool(result("c", 1)),
        assistant(call("c")),
        tool(result("c", 2)),
        assistant(call("c_2")),
        tool(result("c_2", 3)),
    ) == [
        ("assistant", "c?"),
        ("tool", "c=1"),
        ("assistant", "c_3?"),
        ("tool", "c_3=2"),
        ("assistant", "c_2?"),
        ("tool", "c_2=3"),
    ]


def test_a_call_id_used_again_in_one_answer_keeps_its_own_result() -> None:
    answer = assistant(call("c"), result("c", 1), call("c"), result("c", 2))
    assert told(answer) == [("assistant", "c?", "c_2?"), ("tool", "c=1"), ("tool", "c_2=2")]


def test_a_result_before_its_call_is_dropped() -> None:
    assert told(tool(result("c", 1)), assistant(call("c")), tool(result("c", 2))) == [
        ("assistant", "c?"),
        ("tool", "c=2"),
    ]


def test_the_last_of_several_results_counts() -> None:
    assert told(assistant(call("c")), tool(result("c", 1)), tool(result("c", 2))) == [
        ("assistant", "c?"),
        ("tool", "c=2"),
    ]


def test_other_messages_come_after_the_results() -> None:
    assert told(
        assistant(call("a"), call("b")), user("wait"), tool(result("b", 2), result("a", 1))
    ) == [("assistant", "a?", "b?"), ("tool", "a=1"), ("tool", "b=2"), ("user", "wait")]


def test_a_call_without_result_is_interrupted() -> None:
    turns = normalise(
        read_turns([assistant(call("c", "put")), user("hi")]), PROFILES["openai_chat"]
    )
    assert turns_to_json(turns)[1]["parts"] == [
        {
            "type": "tool-result",
            "id": "c",
            "name": "put",
            "status": "failed",
            "error": INTERRUPTED,
            "synthetic": "interrupted",
        }
    ]


def test_only_the_last_message_may_wait_for_results() -> None:
    first, last = assistant(call("a")), assistant(call("b"), call("c"))
    assert told(first, last, tool(result("c", 1)), live_frontier=True) == [
        ("assistant", "a?"),
        ("tool", "a!"),
        ("assistant", "b?", "c?"),
        ("tool", "c=1"),
    ]
    assert told(first, user("hi"), live_frontier=True)[1] == ("tool", "a!")


@pytest.mark.parametrize("output", ["", " \n", None])
def test_a_blank_output_is_told(output: str | None) -> None:
    assert told(assistant(call("c")), tool(result("c", output)))[1] == ("tool", "c=(no output)")


@pytest.mark.parametrize("output", [0, False, {}, []])
def test_a_falsy_output_is_an_output(output: Any) -> None:
    assert told(assistant(call("c")), tool(result("c", output)))[1] == ("tool", f"c={output}")


@pytest.mark.parametrize(
    ("part", "error"),
    [
        (failed("c", "broken"), "broken"),
        (failed("c", " "), "(no output)"),
        (failed("c", None), "(no output)"),
        (failed("c", None, output={"why": "é"}), '{"why":"é"}'),
    ],
)
def test_a_failed_result_tells_its_error(part: dict[str, Any], error: str) -> None:
    turns = normalise(read_turns([assistant(call("c")), tool(part)]), PROFILES["openai_chat"])
    assert turns_to_json(turns)[1]["parts"][0]["error"] == error


def test_a_result_takes_the_name_of_its_call() -> None:
    turns = normalise(
        read_turns([assistant(call("c", "put")), tool(result("c", 1, "get"))]),
        PROFILES["openai_chat"],
    )
    assert turns_to_json(turns)[1]["parts"][0]["name"] == "put"


def test_calls_and_texts_out_of_place_are_dropped() -> None:
    assert told(user("a", call("c")), tool("b", result("c"))) == [("user", "a")]


def test_an_unknown_role_is_a_user() -> None:
    assert told(message("critic", text("a"))) == [("user", "a")]
