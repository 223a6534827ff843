"""Snapshots: stored messages are those that an AG-UI client has after the streams of them."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import Event
from pydantic import TypeAdapter

from vitehub_chat.model.messages import Message
from vitehub_chat.streams.ag_ui_snapshot import encode_snapshot
from vitehub_chat.streams.chunks import Chunk

MODELS: TypeAdapter[Any] = TypeAdapter(Event)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def tool(call_id: str, state: str, **more: Any) -> dict[str, Any]:
    facts = {"type": "dynamic-tool", "toolName": "t", "toolCallId": call_id, "input": {"a": 1}}
    return {**facts, "state": state, **more}


def call(call_id: str, arguments: str = '{"a":1}') -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "t", "arguments": arguments}}


def stored(role: str, *parts: Any, message_id: str | None = "x") -> Message:
    return Message(message_id, role, parts)


def encode(*messages: Message) -> list[Chunk]:
    chunks = encode_snapshot(messages, thread_id="t1", run_id="r1")
    for chunk in chunks:
        MODELS.validate_python(chunk)
    return chunks


def snapshot(*messages: Message) -> list[Any]:
    (_, event, _) = encode(*messages)
    found: list[Any] = event["messages"]
    return found


def test_a_snapshot_is_all_that_its_run_tells() -> None:
    assert encode() == [
        {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"},
        {"type": "MESSAGES_SNAPSHOT", "messages": []},
        {
            "type": "RUN_FINISHED",
            "threadId": "t1",
            "runId": "r1",
            "outcome": {"type": "success"},
        },
    ]


def test_messages_keep_their_order_and_ids() -> None:
    messages = [
        stored("system", text("Be kind."), message_id="s"),
        stored("user", text("Hel"), text("lo"), message_id="m"),
        stored("assistant", {"type": "step-start"}, text("Hi"), message_id="a"),
    ]
    assert snapshot(*messages) == [
        {"id": "s", "role": "system", "content": "Be kind."},
        {"id": "m", "role": "user", "content": "Hello"},
        {"id": "a", "role": "assistant", "content": "Hi"},
    ]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_message_that_says_nothing_is_a_blank_one(role: str) -> None:
    assert snapshot(stored(role, {"type": "step-start"})) == [
        {"id": "x", "role": role, "content": ""}
    ]


def test_media_of_a_user_are_parts_with_a_source() -> None:
    image = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,QQ=="}
    paper = {"type": "file", "mediaType": "application/pdf", "url": "https://a/b.pdf"}
    assert snapshot(stored("user", text("Look"), image, paper))[0]["content"] == [
        {"type": "text", "text": "Look"},
        {
            "type": "image",
            "source": {"type": "data", "value": "QQ==", "mimeType": "image/png"},
        },
        {
            "type": "document",
            "source": {"type": "url", "value": "https://a/b.pdf", "mimeType": "application/pdf"},
        },
    ]


def test_calls_side_by_side_come_before_their_results_and_speech_after_them_is_the_next() -> None:
    answer = stored(
        "assistant",
        text("Wait."),
        tool("c1", "output-available", output={"b": 2}),
        tool("c2", "output-error", errorText="no"),
        text("Done."),
    )
    assert snapshot(answer) == [
        {"id": "x", "role": "assistant", "content": "Wait.", "toolCalls": [call("c1"), call("c2")]},
        {"id": "c1:result", "role": "tool", "toolCallId": "c1", "content": '{"b":2}'},
        {"id": "c2:result", "role": "tool", "toolCallId": "c2", "content": "no", "error": "no"},
        {"id": "x:2", "role": "assistant", "content": "Done."},
    ]


@pytest.mark.parametrize(
    ("state", "more"),
    [
        ("input-available", {}),
        ("input-streaming", {}),
        ("approval-responded", {"approval": {"id": "a1", "approved": True}}),
    ],
)
def test_a_call_that_waits_has_no_result(state: str, more: dict[str, Any]) -> None:
    chunks = encode(stored("assistant", tool("c1", state, **more)))
    assert chunks[1]["messages"] == [{"id": "x", "role": "assistant", "toolCalls": [call("c1")]}]
    assert chunks[-1]["outcome"] == {"type": "success"}


def test_a_call_that_was_denied_says_so() -> None:
    approval = {"id": "a1", "approved": False, "reason": "too much"}
    (_, result) = snapshot(stored("assistant", tool("c1", "output-denied", approval=approval)))
    assert (result["content"], result["error"]) == ("too much", "too much")


def test_only_the_last_answer_ends_the_run_with_its_interrupts() -> None:
    asking = stored(
        "assistant", tool("c1", "approval-requested", approval={"id": "a1"}), message_id="a"
    )
    outcome = encode(stored("user", text("Hi"), message_id="m"), asking)[-1]["outcome"]
    assert outcome["type"] == "interrupt"
    assert [(each["id"], each["toolCallId"]) for each in outcome["interrupts"]] == [("a1", "c1")]
    later = encode(asking, stored("user", text("Hi"), message_id="m"))
    assert later[-1]["outcome"] == {"type": "success"}


def test_reasoning_comes_before_the_answer_that_has_the_id() -> None:
    answer = stored("assistant", {"type": "reasoning", "text": "Hm."}, text("Hi"))
    assert snapshot(answer) == [
        {"id": "x:0", "role": "reasoning", "content": "Hm."},
        {"id": "x", "role": "assistant", "content": "Hi"},
    ]
    assert [each["id"] for each in snapshot(stored("assistant", answer.parts[0]))] == ["x:0", "x"]


def test_what_has_no_place_is_left_out() -> None:
    parts = [
        {"type": "data-x", "data": 1},
        {"type": "source-url", "sourceId": "s", "url": "https://a"},
        {"type": "file", "mediaType": "image/png", "url": "https://a/b.png"},
        {"type": 5},
        text("Hi"),
    ]
    assert snapshot(stored("assistant", *parts)) == [
        {"id": "x", "role": "assistant", "content": "Hi"}
    ]
    assert snapshot(stored("user", parts[0], parts[-1])) == [
        {"id": "x", "role": "user", "content": "Hi"}
    ]
    assert snapshot(stored("narrator", text("Once"))) == []


def test_results_of_other_runtimes_are_messages_of_tools() -> None:
    results = stored(
        "tool",
        {"type": "tool-result", "id": "c1", "name": "t", "output": "one"},
        {"type": "tool-result", "id": "c2", "name": "t", "status": "failed", "error": "no"},
    )
    assert snapshot(results) == [
        {"id": "x", "role": "tool", "toolCallId": "c1", "content": "one"},
        {"id": "c2:result", "role": "tool", "toolCallId": "c2", "content": "no", "error": "no"},
    ]


def test_no_two_messages_have_one_id() -> None:
    answers = [
        stored(
            "assistant",
            text("A"),
            tool("c1", "output-available", output=1),
            text("B"),
            message_id=name,
        )
        for name in ("a", "a:2", "b")
    ]
    ids = [each["id"] for each in snapshot(*answers)]
    assert len(set(ids)) == len(ids) == 9
    assert {"a", "a:2", "b"} <= set(ids)


def test_input_that_is_too_deep_to_be_told_hides_no_other_message() -> None:
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    made = tool("c1", "output-available", output=deep) | {"input": deep}
    messages = snapshot(stored("assistant", made, message_id="a"), stored("user", text("Hi")))
    assert [each["role"] for each in messages] == ["assistant", "tool", "user"]


def test_half_of_a_pair_is_replaced() -> None:
    (message,) = snapshot(stored("assistant", text("a\ud83d")))
    assert message["content"].startswith("a")
    message["content"].encode()
