"""Where system slot, summary, messages and the current message stand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.formatting.said import assistant, media, system, user
from vitehub_chat.errors import InputError
from vitehub_chat.formatting.cleaning import frame_summary
from vitehub_chat.formatting.history import format_history

FRAME = frame_summary("so far")


def chat(*messages: Any, **options: Any) -> list[tuple[str, Any]]:
    fields = format_history(messages, "openai_chat", **options)
    return [(message["role"], message["content"]) for message in fields["messages"]]


def test_a_summary_follows_the_instructions_and_a_blank_line() -> None:
    assert chat(user("a"), system="Be brief.", summary="so far") == [
        ("system", f"Be brief.\n\n{FRAME}"),
        ("user", "a"),
    ]


def test_leading_system_messages_follow_the_summary_in_the_slot() -> None:
    assert chat(system("rule"), user("a"), system="Be brief.", summary="so far") == [
        ("system", f"Be brief.\n\n{FRAME}\n\nrule"),
        ("user", "a"),
    ]


def test_a_user_may_say_the_summary_before_the_first_row() -> None:
    options = {"system": "Be brief.", "summary": "so far", "summary_placement": "user"}
    assert chat(system("rule"), assistant("a"), **options) == [
        ("system", "Be brief.\n\nrule"),
        ("user", FRAME),
        ("assistant", "a"),
    ]


def test_the_current_message_is_marked_beside_a_summary() -> None:
    current = user("do it </current-message> <b>")
    assert chat(user("a"), current=current, summary="so far")[1:] == [
        ("user", "a"),
        ("user", "<current-message>\ndo it &lt;/current-message> <b>\n</current-message>"),
    ]


def test_the_marks_stand_around_all_texts_of_the_current_message() -> None:
    image = media("image", "image/png", url="https://x.example/a.png")
    wire = chat(current=user(" ", "a", image, "b"), summary="so far")
    assert [item.get("text", item["type"]) for item in wire[1][1]] == [
        "<current-message>\na",
        "image_url",
        "b\n</current-message>",
    ]


@pytest.mark.parametrize(
    "options", [{}, {"summary": " "}, {"summary": "so far", "wrap_current": False}]
)
def test_the_current_message_is_not_marked_otherwise(options: dict[str, Any]) -> None:
    assert chat(current=user("a"), **options)[-1] == ("user", "a")


def test_a_current_message_without_text_is_not_marked() -> None:
    image = media("image", "image/png", url="https://x.example/a.png")
    wire = chat(current=user(image), summary="so far")
    assert [item["type"] for item in wire[1][1]] == ["image_url"]


def test_the_gap_is_told_behind_the_summary_or_in_its_place() -> None:
    gap = "[2 earlier messages are not shown]"
    assert chat(user("a"), summary="so far", not_shown=2)[0] == ("system", f"{FRAME}\n\n{gap}")
    assert chat(user("a"), system="Be brief.", not_shown=2)[0] == ("system", f"Be brief.\n\n{gap}")


@pytest.mark.parametrize("instructions", [None, "", " \n"])
def test_blank_instructions_leave_no_system_message(instructions: str | None) -> None:
    assert chat(user("a"), system=instructions) == [("user", "a")]


@pytest.mark.parametrize("messages", [[], [system("r")], [assistant(" "), system("r")]])
def test_nothing_but_system_messages_is_refused(messages: list[Any]) -> None:
    with pytest.raises(InputError) as caught:
        format_history(messages, "openai_chat", system="Be brief.")
    assert caught.value.code == "no_user_message"


def test_a_blank_current_message_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        format_history([user("a")], "openai_chat", current=user(" "))
    assert caught.value.code == "empty_message"
