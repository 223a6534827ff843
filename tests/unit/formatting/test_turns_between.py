"""System notes, merging, fillers and ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.formatting.said import assistant, call, media, result, system, tool, user
from vitehub_chat.formatting.history import format_history

PNG = media("image", "image/png", data="aGk=")


def chat(profile: str, *messages: Any, **options: Any) -> list[tuple[str, Any]]:
    fields = format_history(messages, profile, **options)
    return [(entry["role"], entry["content"]) for entry in fields["messages"]]


@pytest.mark.parametrize("profile", ["openai_chat", "groq", "deepseek", "ollama"])
def test_a_later_system_message_stays_where_it_is(profile: str) -> None:
    assert chat(profile, system("r"), user("a"), system("m"), system("n")) == [
        ("system", "r"),
        ("user", "a"),
        ("system", "m"),
        ("system", "n"),
    ]


def test_responses_calls_it_a_developer_message() -> None:
    fields = format_history([system("r"), user("a"), system("m")], "openai_responses")
    assert fields == {
        "instructions": "r",
        "input": [
            {"type": "message", "role": "user", "content": "a"},
            {"type": "message", "role": "developer", "content": "m"},
        ],
    }


@pytest.mark.parametrize("profile", ["mistral", "strict"])
def test_or_it_becomes_a_note_in_the_users_text(profile: str) -> None:
    assert chat(profile, user("a"), system("m", "n</system-note>"), user("b")) == [
        ("user", "a\n\n<system-note>m\n\nn&lt;/system-note></system-note>\n\nb")
    ]


def test_a_note_comes_after_the_results_it_stood_between() -> None:
    assert chat("strict", user("a"), assistant(call("c")), system("m"), tool(result("c"))) == [
        ("user", "a"),
        ("assistant", None),
        ("tool", "ok"),
        ("assistant", "OK."),
        ("user", "<system-note>m</system-note>"),
    ]


def test_gemini_and_bedrock_have_slots_of_their_own() -> None:
    messages = [system("r"), user("a")]
    gemini, bedrock = (format_history(messages, name) for name in ("gemini", "bedrock"))
    assert gemini["systemInstruction"] == {"parts": [{"text": "r"}]}
    assert bedrock["system"] == [{"text": "r"}]


def test_texts_are_joined_up_to_the_next_image() -> None:
    assert chat("mistral", user("a"), user("b", PNG), user("c", "d"))[0][1] == [
        {"type": "text", "text": "a\n\nb"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "text", "text": "c\n\nd"},
    ]


def test_answers_of_several_agents_are_one_turn() -> None:
    fields = format_history([user("a"), assistant("b"), assistant("c")], "bedrock")
    assert fields["messages"][1] == {"role": "assistant", "content": [{"text": "b"}, {"text": "c"}]}


def test_results_may_keep_a_turn_of_their_own() -> None:
    messages = [user("a"), assistant(call("c")), tool(result("c")), user("b")]
    fields = format_history(messages, "bedrock", split_results=True)
    assert fields["messages"][2:] == [
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "ok"}]}}],
        },
        {"role": "assistant", "content": [{"text": "OK."}]},
        {"role": "user", "content": [{"text": "b"}]},
    ]


@pytest.mark.parametrize("profile", ["anthropic", "bedrock"])
def test_a_final_answer_loses_its_trailing_white_space(profile: str) -> None:
    fields = format_history([user("a "), assistant("b \n")], profile)
    texts = [entry["content"][0]["text"] for entry in fields["messages"]]
    assert texts == ["a ", "b"]


def test_other_answers_keep_theirs() -> None:
    assert chat("openai_chat", user("a "), assistant("b \n"))[1] == ("assistant", "b \n")
    fields = format_history([user("a"), assistant("b \n"), user("c")], "anthropic")
    assert fields["messages"][1]["content"] == [{"type": "text", "text": "b \n"}]


@pytest.mark.parametrize("profile", ["mistral", "strict", "anthropic", "gemini", "bedrock"])
def test_a_user_begins(profile: str) -> None:
    fields = format_history([system("r"), assistant("b")], profile)
    entries = fields.get("contents") or fields["messages"]
    begin = next(entry for entry in entries if entry["role"] != "system")
    assert begin["role"] == "user"
    assert "(conversation continues)" in str(begin)
