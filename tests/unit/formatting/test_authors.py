"""Who speaks, in the text or in a field of its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.formatting.said import assistant, media, user
from vitehub_chat.formatting.history import format_history

PNG = media("image", "image/png", data="aGk=")


def chat(profile: str, *messages: Any, **options: Any) -> list[Any]:
    return list(format_history(messages, profile, **options)["messages"])


@pytest.mark.parametrize("profile", ["openai_chat", "groq", "deepseek"])
def test_an_author_that_fits_is_the_name(profile: str) -> None:
    assert chat(profile, user("a", author=" ana_1 ")) == [
        {"role": "user", "name": "ana_1", "content": "a"}
    ]


@pytest.mark.parametrize("author", ["Ana María", "", "<|x", "é"])
def test_an_author_that_fits_no_name_is_left_out(author: str) -> None:
    assert chat("openai_chat", user("a", author=author)) == [{"role": "user", "content": "a"}]


@pytest.mark.parametrize("profile", ["mistral", "strict", "ollama"])
def test_other_profiles_have_no_name(profile: str) -> None:
    assert chat(profile, user("a", author="ana")) == [{"role": "user", "content": "a"}]


def test_a_prefix_takes_the_place_of_the_name() -> None:
    assert chat("openai_chat", user("a", "b", author="Ana María"), speaker_prefix=True) == [
        {"role": "user", "content": "Ana María: a\n\nb"}
    ]


def test_a_message_without_text_begins_with_its_author() -> None:
    content = chat("openai_chat", user(PNG, author="ana"), speaker_prefix=True)[0]["content"]
    assert content[0] == {"type": "text", "text": "ana:"}


def test_an_author_called_like_a_role_does_not_pass_for_it() -> None:
    assert chat("openai_chat", user("a", author="System"), speaker_prefix=True) == [
        {"role": "user", "content": "> System: a"}
    ]


def test_only_users_have_authors() -> None:
    answer = assistant("b")
    named = type(answer)(None, answer.role, answer.parts, {"author": "bot"})
    assert chat("openai_chat", user("a"), named, speaker_prefix=True)[1] == {
        "role": "assistant",
        "content": "b",
    }


@pytest.mark.parametrize(("other", "name"), [("ana", {"name": "ana"}), ("bo", {})])
def test_a_merged_message_is_named_when_one_person_said_it_all(
    other: str, name: dict[str, str]
) -> None:
    assert chat("deepseek", user("a", author="ana"), user("b", author=other)) == [
        {"role": "user", **name, "content": "a\n\nb"}
    ]
