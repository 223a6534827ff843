"""The official types are strict enough to hold request fields against."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.formatting.sdk_types import refusals
from vitehub_chat.formatting.profiles import PROFILES

SAID = {"role": "user", "content": [{"type": "text", "text": "a", "more": 1}]}
LATE = {"type": "function_call_output", "call_id": "c"}


@pytest.mark.parametrize(
    ("profile", "fields"),
    [
        ("openai_chat", {"messages": [SAID]}),
        ("openai_chat", {"messages": [{"role": "tool", "content": "x"}]}),
        ("openai_responses", {"input": [LATE]}),
        ("anthropic", {"messages": [SAID]}),
        ("anthropic", {"messages": [{"role": "tool", "content": "x"}]}),
        ("gemini", {"contents": [{"role": "user", "parts": [{"text": "a", "more": 1}]}]}),
        ("bedrock", {"messages": [{"role": "tool", "content": [{"text": 1}]}]}),
    ],
)
def test_they_refuse_what_they_do_not_describe(profile: str, fields: dict[str, Any]) -> None:
    assert refusals(PROFILES[profile], fields) != []
