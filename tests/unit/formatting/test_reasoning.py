"""Reasoning goes back to its own provider, and whole."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.formatting.said import assistant, call, reasoning, result, user
from vitehub_chat.formatting.history import format_history
from vitehub_chat.formatting.profiles import PROFILES

ITEM = {"type": "reasoning", "id": "r1", "summary": []}
ALL = [
    reasoning("anthropic", text="hm", signature="YQ=="),
    reasoning("bedrock", text="hm", signature="Yg=="),
    reasoning("deepseek", text="hm"),
    reasoning("openai", item=ITEM),
    reasoning("xai", text="hm", signature="eA==", item=ITEM),
    reasoning("gemini", signature="Zw=="),
]


def answer(profile: str, *parts: Any, **options: Any) -> Any:
    fields = format_history([user("a"), assistant(*parts)], profile, **options)
    entries = fields.get("messages") or fields.get("contents") or fields["input"]
    return entries[1:]


def test_anthropic_gets_thinking_blocks() -> None:
    assert answer("anthropic", *ALL, "b")[0]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "YQ=="},
        {"type": "text", "text": "b"},
    ]


def test_bedrock_gets_reasoning_content() -> None:
    assert answer("bedrock", *ALL, "b")[0]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "Yg=="}}},
        {"text": "b"},
    ]


def test_responses_gets_the_item_verbatim() -> None:
    assert answer("openai_responses", *ALL, "b") == [
        ITEM,
        {"type": "message", "role": "assistant", "content": "b"},
    ]


@pytest.mark.parametrize(("thinking", "more"), [(True, {"reasoning_content": "hm"}), (False, {})])
def test_deepseek_gets_its_text_when_asked_for(thinking: bool, more: dict[str, str]) -> None:  # noqa: FBT001
    assert answer("deepseek", *ALL, "b", thinking=thinking) == [
        {"role": "assistant", "content": "b", **more}
    ]


@pytest.mark.parametrize(
    "parts",
    [
        (reasoning("gemini", signature="Zw=="), call("c1")),
        (call("c1", provider="gemini", signature="Zw=="),),
    ],
)
def test_gemini_gets_the_signature_of_a_call(parts: tuple[Any, ...]) -> None:
    assert answer("gemini", "b", *parts, result("c1"))[0]["parts"] == [
        {"text": "b"},
        {"functionCall": {"name": "get", "args": {}}, "thoughtSignature": "Zw=="},
    ]


@pytest.mark.parametrize(
    ("profile", "part"),
    [
        ("anthropic", reasoning("anthropic", text="hm")),
        ("bedrock", reasoning("bedrock", text="hm")),
        ("openai_responses", reasoning("openai", text="hm")),
        ("deepseek", reasoning("deepseek", signature="x")),
        ("gemini", reasoning("gemini", text="hm", signature="x")),
    ],
)
def test_a_part_that_lacks_something_is_dropped(profile: str, part: Any) -> None:
    assert answer(profile, part, "b", thinking=True) == answer(profile, "b", thinking=True)


@pytest.mark.parametrize("profile", PROFILES)
def test_an_answer_of_reasoning_alone_is_dropped(profile: str) -> None:
    assert answer(profile, *ALL, thinking=True) == []
