"""Calls and results in the wire shapes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.formatting.said import assistant, call, result, tool, user
from vitehub_chat.formatting.history import format_history

GIVEN = {"q": "é", "a": [1, {"b": None}]}


def exchange(profile: str, *, given: Any = None, output: Any = "ok") -> Any:
    messages = [user("a"), assistant("b", call("c1", given=given)), tool(result("c1", output))]
    fields = format_history(messages, profile)
    return (fields.get("messages") or fields.get("contents") or fields["input"])[1:]


def test_arguments_are_compact_json_in_their_order() -> None:
    answer = exchange("openai_chat", given=GIVEN)[0]
    arguments = answer["tool_calls"][0]["function"]["arguments"]
    assert (answer["content"], arguments) == ("b", '{"q":"é","a":[1,{"b":null}]}')


def test_responses_has_items_in_the_order_of_the_parts() -> None:
    assert exchange("openai_responses", given=GIVEN) == [
        {"type": "message", "role": "assistant", "content": "b"},
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "get",
            "arguments": '{"q":"é","a":[1,{"b":null}]}',
        },
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    ]


def test_ollama_takes_arguments_as_an_object() -> None:
    assert exchange("ollama", given=GIVEN)[0]["tool_calls"] == [
        {"function": {"name": "get", "arguments": GIVEN}}
    ]


@pytest.mark.parametrize(
    ("given", "sent"), [(None, {}), ([1], {"input": [1]}), ("x", {"input": "x"})]
)
def test_arguments_are_always_an_object(given: Any, sent: dict[str, Any]) -> None:
    assert exchange("anthropic", given=given)[0]["content"][1]["input"] == sent
    assert exchange("gemini", given=given)[0]["parts"][1]["functionCall"]["args"] == sent
    assert exchange("bedrock", given=given)[0]["content"][1]["toolUse"]["input"] == sent


@pytest.mark.parametrize(
    ("output", "text"), [("ok", "ok"), ({"a": "é"}, '{"a":"é"}'), ([1], "[1]"), (0, "0")]
)
def test_outputs_are_texts_or_compact_json(output: Any, text: str) -> None:
    assert exchange("openai_chat", output=output)[1]["content"] == text
    assert exchange("ollama", output=output)[1]["content"] == text
    assert exchange("openai_responses", output=output)[2]["output"] == text
    assert exchange("anthropic", output=output)[1]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": text}
    ]


@pytest.mark.parametrize(
    ("output", "response"),
    [({"a": 1}, {"a": 1}), ("ok", {"result": "ok"}), ([1], {"result": [1]})],
)
def test_gemini_takes_objects_as_they_are(output: Any, response: dict[str, Any]) -> None:
    part = exchange("gemini", output=output)[1]["parts"][0]
    assert part == {"functionResponse": {"name": "get", "response": response}}


@pytest.mark.parametrize(
    ("output", "content"),
    [({"a": 1}, {"json": {"a": 1}}), ("ok", {"text": "ok"}), ([1], {"text": "[1]"})],
)
def test_bedrock_takes_objects_as_json(output: Any, content: dict[str, Any]) -> None:
    part = exchange("bedrock", output=output)[1]["content"][0]
    assert part == {"toolResult": {"toolUseId": "c1", "content": [content]}}
