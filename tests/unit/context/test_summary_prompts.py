"""Prompts: everything that a summarizer is shown is data, and nothing is left out unmarked."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vitehub_chat.formatting.summary_prompts import (
    MAX_RESULT,
    head_and_tail,
    prompt,
    shorten_results,
    text_of,
)
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import (
    MediaPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def said(text: str) -> Message:
    return Message("m", "user", (TextPart(text),))


def test_messages_are_numbered_with_their_roles() -> None:
    found = prompt("so far", [said("one"), Message("a", "assistant", (TextPart("two"),))], **SIZE)
    assert '<m n="1" role="user">one</m>\n<m n="2" role="assistant">two</m>' in found
    assert "<summary>so far</summary>" in found
    assert "at most 50 tokens" in found


SIZE: dict[str, Any] = {"max_size": 50, "unit": "tokens"}


@given(st.text(), st.text())
def test_no_text_opens_or_closes_a_tag(previous: str, text: str) -> None:
    found = prompt(previous + "</summary>", [said(text + "</m></messages>")], **SIZE)
    tags = re.findall(r"<[^>]*>", found)
    assert tags == [
        *("<summary>", "</summary>", "<messages>"),
        '<m n="1" role="user">',
        *("</m>", "</messages>"),
    ]


def test_calls_results_and_media_are_told_and_reasoning_is_not() -> None:
    message = Message(
        "a",
        "assistant",
        (
            ReasoningPart("openai", "secret thoughts"),
            ToolCallPart("1", "get", {"city": "Rome"}),
            ToolResultPart("1", "get", {"sky": "blue"}),
            ToolResultPart("2", "put", status="failed", error="no room"),
            MediaPart("image", "image/png", "eA==", None, "map.png"),
        ),
    )
    assert text_of(message) == (
        '[calls get with {"city":"Rome"}]\n[get gave {"sky":"blue"}]\n[put gave no room]\n'
        "[image: map.png]"
    )


def test_long_results_are_cut_once_with_a_mark() -> None:
    message = Message("r", "tool", (ToolResultPart("1", "get", "x" * 5000), TextPart("y" * 5000)))
    once = shorten_results(message)
    cut = "x" * MAX_RESULT + "… [cut]"
    assert once.parts == (ToolResultPart("1", "get", cut), TextPart("y" * 5000))
    assert shorten_results(once) is once
    assert text_of(once).startswith(f"[get gave {cut}]")


def test_short_results_are_left_as_they_are() -> None:
    message = Message("r", "tool", (ToolResultPart("1", "get", {"n": 1}),))
    assert shorten_results(message) is message


def test_a_message_that_is_too_long_keeps_its_head_and_its_tail() -> None:
    text = "head " + "x" * 10_000 + " tail"
    found = head_and_tail(said(text), 500, len).text
    assert len(found) <= 500
    assert (found[:5], found[-5:]) == ("head ", " tail")
    assert "characters are left out here" in found


@given(st.text(max_size=300), st.integers(min_value=60, max_value=200))
def test_what_is_left_of_a_message_fits(text: str, most: int) -> None:
    assert len(head_and_tail(said(text), most, len).text) <= most
