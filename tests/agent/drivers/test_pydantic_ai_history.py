"""Prepared messages as the history of a Pydantic AI run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    VideoUrl,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.agent.drivers.pydantic_ai import create
from vitehub_chat.agent.drivers.pydantic_ai_history import (
    CONTINUES,
    INTERRUPTED,
    NO_OUTPUT,
    NO_TEXT,
    Prepared,
    prepare,
    replay,
)
from vitehub_chat.model import parts as ours
from vitehub_chat.model.events import Done
from vitehub_chat.model.messages import Message

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def said(role: str, *parts: ours.Part | str, message_id: str = "m") -> Message:
    values = (ours.TextPart(part) if isinstance(part, str) else part for part in parts)
    return Message(message_id, role, tuple(values), {}, NOW)


def history_of(*messages: Message) -> list[ModelMessage]:
    return prepare([*messages, said("user", "now")], {}).history


def returns(messages: list[ModelMessage]) -> list[tuple[str, str, Any]]:
    return [
        (part.tool_call_id, part.outcome, part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


def call(call_id: str, name: str = "look", given: Any = None) -> ours.ToolCallPart:
    return ours.ToolCallPart(call_id, name, given)


def result(call_id: str, output: Any, name: str = "look") -> ours.ToolResultPart:
    return ours.ToolResultPart(call_id, name, output)


def test_the_roles_stay_in_their_order_with_their_times() -> None:
    history = history_of(
        said("system", "Rules."), said("user", "q"), said("assistant", "a"), said("system", "Note.")
    )
    assert history == [
        ModelRequest([SystemPromptPart("Rules.", timestamp=NOW)]),
        ModelRequest([UserPromptPart("q", timestamp=NOW)]),
        ModelResponse(history[2].parts, timestamp=NOW),  # type: ignore[arg-type]
        ModelRequest([SystemPromptPart("Note.", timestamp=NOW)]),
    ]


def test_text_after_a_result_is_the_next_response() -> None:
    history = history_of(
        said("assistant", "one", call("c1"), result("c1", 1), "two", call("c2"), result("c2", 2))
    )
    kinds = [[part.part_kind for part in message.parts] for message in history]
    assert kinds == [["text", "tool-call"], ["tool-return"]] * 2


def test_calls_with_results_side_by_side_are_one_response() -> None:
    parts = (call("c1"), result("c1", 1), call("c2"), result("c2", 2))
    kinds = [
        [part.part_kind for part in message.parts]
        for message in history_of(said("assistant", *parts))
    ]
    assert kinds == [["tool-call", "tool-call"], ["tool-return", "tool-return"]]


def test_a_result_goes_behind_its_call_from_wherever_it_stands_and_the_last_one_counts() -> None:
    history = history_of(
        said("assistant", call("c1"), call("c2")),
        said("user", "meanwhile"),
        said("tool", result("c2", "two")),
        said("tool", result("c1", "one"), result("c1", "uno")),
    )
    assert [message.kind for message in history] == ["response", "request", "request"]
    assert returns(history) == [("c1", "success", "uno"), ("c2", "success", "two")]


def test_a_result_without_a_call_is_left_out() -> None:
    assert history_of(said("tool", result("c9", 1)), said("assistant", result("c8", 1))) == []


def test_an_id_that_comes_again_is_renamed_with_its_result() -> None:
    history = history_of(
        said("assistant", call("c1"), result("c1", "first")),
        said("assistant", call("c1_2"), result("c1_2", "other")),
        said("assistant", call("c1"), result("c1", "second")),
    )
    assert returns(history) == [
        ("c1", "success", "first"),
        ("c1_2", "success", "other"),
        ("c1_3", "success", "second"),
    ]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((call("c1"),), ("c1", "interrupted", INTERRUPTED)),
        ((call("c1"), ours.ApprovalRequestPart("a", "c1")), ("c1", "interrupted", INTERRUPTED)),
        ((call("c1"), result("c1", ours.ABSENT)), ("c1", "success", NO_OUTPUT)),
        ((call("c1"), result("c1", " ")), ("c1", "success", NO_OUTPUT)),
        ((call("c1"), result("c1", None)), ("c1", "success", None)),
        (
            (call("c1"), ours.ToolResultPart("c1", "look", status="failed", error="broken")),
            ("c1", "failed", "broken"),
        ),
        (
            (call("c1"), ours.ToolResultPart("c1", "look", status="failed")),
            ("c1", "failed", NO_OUTPUT),
        ),
        (
            (
                call("c1"),
                ours.ApprovalRequestPart("a", "c1"),
                ours.ApprovalDecisionPart("a", approved=False),
            ),
            ("c1", "denied", "denied"),
        ),
        (
            (
                call("c1"),
                ours.ApprovalRequestPart("a", "c1"),
                ours.ApprovalDecisionPart("a", approved=True),
            ),
            ("c1", "interrupted", INTERRUPTED),
        ),
    ],
)
def test_every_earlier_call_has_one_result(
    parts: tuple[ours.ModelPart, ...], expected: tuple[str, str, Any]
) -> None:
    assert returns(history_of(said("assistant", *parts))) == [expected]


@pytest.mark.parametrize(
    ("given", "args"),
    [({"a": 1}, {"a": 1}), (None, None), ("{broken", "{broken"), ([1], "[1]"), (3, "3")],
)
def test_the_input_of_a_call_is_kept_as_the_model_can_be_given_it(given: Any, args: Any) -> None:
    (response, _) = history_of(said("assistant", call("c1", given=given)))
    (part,) = response.parts
    assert isinstance(part, ToolCallPart)
    assert part.args == args


def test_data_parts_and_blank_text_are_left_out() -> None:
    assert (
        history_of(
            said("user", " \n", ours.DataPart("data-x", {"a": 1})),
            said("assistant", "\u200b"),
            said("system", ""),
        )
        == []
    )


def prompt_of(*parts: ours.Part | str) -> Any:
    return prepare([said("user", *parts)], {}).prompt


def test_media_of_a_user_is_sent() -> None:
    urls = [("image/png", "image"), ("audio/wav", "audio"), ("video/mp4", "file")]
    media: list[ours.MediaPart] = [
        ours.MediaPart(kind, media_type, url=f"https://x.test/{media_type}")  # type: ignore[arg-type]
        for media_type, kind in [*urls, ("application/pdf", "file")]
    ]
    assert prompt_of("see", *media, ours.MediaPart("image", "image/png", data="AAEC")) == [
        "see",
        ImageUrl("https://x.test/image/png", media_type="image/png"),
        AudioUrl("https://x.test/audio/wav", media_type="audio/wav"),
        VideoUrl("https://x.test/video/mp4", media_type="video/mp4"),
        DocumentUrl("https://x.test/application/pdf", media_type="application/pdf"),
        BinaryContent(b"\x00\x01\x02", media_type="image/png"),
    ]


@pytest.mark.parametrize("url", ["s3://bucket/key", "file:///etc/passwd", "gs://b/k", None])
def test_media_that_the_server_would_fetch_with_its_rights_is_only_named(url: str | None) -> None:
    part = ours.MediaPart("image", "image/png", url=url, name="a.png")
    assert prompt_of(part) == "[image not shown: a.png]"


def test_broken_base64_is_only_named() -> None:
    assert prompt_of(ours.MediaPart("file", "text/x", data="%%%")) == "[file not shown: text/x]"


def test_media_of_the_assistant_is_a_file_or_named() -> None:
    (response,) = history_of(
        said(
            "assistant",
            ours.MediaPart("image", "image/png", data="AAEC"),
            ours.MediaPart("image", "image/png", url="https://x.test/a.png"),
        )
    )
    file, text = response.parts
    assert isinstance(file, FilePart)
    assert getattr(text, "content", None) == "[image not shown: image/png]"


def test_reasoning_goes_only_to_the_provider_that_wrote_it() -> None:
    message = said(
        "assistant",
        ours.ReasoningPart("anthropic", "hm", "sig"),
        ours.ReasoningPart("openai", "other"),
        "a",
    )
    prepared = prepare([message, said("user", "q")], {}, provider="anthropic")
    assert [
        part.content for part in prepared.history[0].parts if isinstance(part, ThinkingPart)
    ] == ["hm"]
    kinds = [part.part_kind for part in prepare([message, said("user", "q")], {}).history[0].parts]
    assert kinds == ["text"]


def test_parts_that_are_json_are_read() -> None:
    message = Message("m", "user", ({"type": "text", "text": "hi"},))
    assert prepare([message], {}) == Prepared(history=[], prompt="hi")


@pytest.mark.parametrize(
    ("messages", "prompt"),
    [
        ([], CONTINUES),
        ([said("assistant", "a")], CONTINUES),
        ([said("user", ours.DataPart("data", 1))], NO_TEXT),
        ([said("user", "q"), said("assistant")], None),
    ],
)
def test_a_run_always_has_something_to_answer(messages: list[Message], prompt: str | None) -> None:
    assert prepare(messages, {}).prompt == prompt


NATIVE: list[ModelMessage] = [
    ModelResponse([ToolCallPart("look", {"at": "sky"}, "c1")]),
    ModelRequest([ToolReturnPart("look", "blue", "c1")]),
    ModelResponse([ToolCallPart("ask", {}, "c2")]),
]


def test_a_call_that_a_native_payload_leaves_open_gets_its_result_from_the_parts() -> None:
    message = said("assistant", call("c2", "ask"), result("c2", "yes", "ask"), message_id="a0")
    history = prepare([message, said("user", "q")], {"a0": NATIVE}).history
    assert history[:3] == NATIVE
    assert returns(history) == [("c1", "success", "blue"), ("c2", "success", "yes")]


def test_a_native_payload_with_an_id_of_another_message_is_not_used() -> None:
    messages = [
        said("assistant", call("c1"), result("c1", "first"), message_id="a0"),
        said("assistant", call("c1"), result("c1", "second"), message_id="a1"),
        said("user", "q"),
    ]
    history = prepare(messages, {"a1": NATIVE}).history
    assert returns(history) == [("c1", "success", "first"), ("c1_2", "success", "second")]


ids = st.sampled_from(["c1", "c2", "c3"])
texts = st.sampled_from(["", " ", "text", "\u200b", "Ω≈ç"])
values = st.sampled_from([None, "", "out", 0, {"a": [1]}, [1, "x"], ours.ABSENT])
names = st.sampled_from(["look", "ask"])
parts = st.one_of(
    st.builds(ours.TextPart, texts),
    st.builds(ours.ToolCallPart, ids, names, st.sampled_from([None, {}, {"a": 1}, "{", [1], 7])),
    st.builds(ours.ToolResultPart, ids, names, values),
    st.builds(
        ours.ToolResultPart,
        ids,
        names,
        status=st.just("failed"),
        error=st.sampled_from([None, "", "broken"]),
    ),
    st.builds(ours.ApprovalRequestPart, st.sampled_from(["a1", "a2"]), ids),
    st.builds(ours.ApprovalDecisionPart, st.sampled_from(["a1", "a2"]), approved=st.booleans()),
    st.builds(ours.DataPart, st.just("data-x"), values),
    st.builds(ours.ReasoningPart, st.sampled_from(["function", "other"]), texts),
    st.builds(
        ours.MediaPart, st.just("image"), st.just("image/png"), st.sampled_from(["AA==", "%"])
    ),
    st.builds(
        ours.MediaPart, st.just("file"), st.just("application/pdf"), url=st.just("https://x.test/a")
    ),
)
roles = st.sampled_from(["user", "assistant", "system", "tool"])


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    drawn = draw(st.lists(st.tuples(roles, st.lists(parts, max_size=6)), max_size=8))
    return [Message(f"m{index}", role, tuple(found)) for index, (role, found) in enumerate(drawn)]


def unpaired(messages: list[ModelMessage]) -> list[str]:
    """Name the calls whose results do not stand right behind them, and the results without call."""
    wrong: list[str] = []
    for index, message in enumerate(messages):
        asked = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
        behind = messages[index + 1 : index + 2] if isinstance(message, ModelResponse) else []
        answered = [each[0] for each in returns(behind)]
        wrong += [] if asked == answered else [f"{asked} {answered}"]
    return wrong


@given(messages=conversations())
async def test_any_messages_are_history_that_a_model_accepts(messages: list[Message]) -> None:
    asked: list[list[ModelMessage]] = []

    async def stream(sent: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        asked.append(sent)
        yield "ok"

    driver = create({"model": FunctionModel(stream_function=stream)})
    events = [event async for event in driver.stream(DriverCall(messages=tuple(messages)))]
    assert events[-1] == Done("stop")
    (sent,) = asked
    assert isinstance(sent[-1], ModelRequest)
    assert unpaired(sent) == []
    ids_sent = [
        part.tool_call_id
        for message in sent
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    assert len(ids_sent) == len(set(ids_sent))


@given(messages=conversations())
def test_no_visible_text_is_lost_and_the_same_messages_give_the_same_history(
    messages: list[Message],
) -> None:
    history = replay(messages, {})
    assert history == replay(messages, {})
    shown = str([getattr(part, "content", "") for each in history for part in each.parts])
    kept = [message.text for message in messages if message.role != "tool"]
    assert shown.count("text") == "".join(kept).count("text")
