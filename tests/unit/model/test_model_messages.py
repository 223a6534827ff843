"""What a driver gets of the parts of a message."""

from __future__ import annotations

from typing import Any

import pytest

from vitehub_chat.errors import InputError
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import (
    check_not_empty,
    has_visible_text,
    is_blank,
    is_only_tool_results,
    read_parts,
    to_model_messages,
)
from vitehub_chat.model.parts import (
    ABSENT,
    ApprovalDecisionPart,
    ApprovalRequestPart,
    DataPart,
    MediaPart,
    ModelPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

CALL = ToolCallPart("t1", "pay", {"sum": 3})
TOOL = {"type": "tool-pay", "toolCallId": "t1", "input": {"sum": 3}}


def failed(error: str, output: Any = ABSENT) -> ToolResultPart:
    return ToolResultPart("t1", "pay", output, "failed", error)


def message(*parts: dict[str, Any]) -> Message:
    return Message("m", "user", parts)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "text", "text": ""}, TextPart("", "text-0")),
        ({"type": "data", "data": None}, DataPart("data", None)),
        ({"type": "data-x", "id": "d", "data": 0}, DataPart("data-x", 0, "d")),
        (
            {"type": "image", "mediaType": "image/png", "url": "https://x/i"},
            MediaPart("image", "image/png", url="https://x/i"),
        ),
        (
            {"type": "file", "media_type": "IMAGE/PNG", "data": "aGk=", "filename": "i.png"},
            MediaPart("image", "IMAGE/PNG", data="aGk=", name="i.png"),
        ),
        (
            {"type": "file", "mediaType": "application/pdf", "data": "aGk=", "name": "n"},
            MediaPart("file", "application/pdf", data="aGk=", name="n"),
        ),
        (
            {"type": "audio", "mediaType": "application/ogg", "url": "https://x/a"},
            MediaPart("audio", "application/ogg", url="https://x/a"),
        ),
        (
            {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,aGk="},
            MediaPart("file", "text/plain", data="aGk="),
        ),
        (
            {"type": "file", "mediaType": "text/plain", "url": "data:,h%69"},
            MediaPart("file", "text/plain", data="aGk="),
        ),
        ({"type": "tool-call", "id": "t1", "name": "pay", "input": {"sum": 3}}, CALL),
        (
            {"type": "tool-result", "id": "t1", "name": "pay", "output": None},
            ToolResultPart("t1", "pay", None),
        ),
        ({"type": "tool-result", "id": "t1", "name": "pay"}, ToolResultPart("t1", "pay")),
    ],
)
def test_a_part_that_is_one_part_of_the_driver(part: dict[str, Any], expected: ModelPart) -> None:
    assert read_parts([part]) == (expected,)


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"type": None},
        {"type": "text"},
        {"type": "text", "text": 5},
        {"type": "data-x"},
        {"type": "image", "mediaType": "image/png"},
        {"type": "image", "mediaType": "", "url": "https://x/i"},
        {"type": "image", "mediaType": 5, "url": "https://x/i"},
        {"type": "file", "mediaType": "text/plain", "url": ""},
        {"type": "tool-call", "name": "pay"},
        {"type": "tool-result", "id": "t1"},
        {"type": "dynamic-tool", "output": 1},
        {"type": "tool-", "output": 1},
        {"type": "step-start"},
        {"type": "source-url", "url": "https://x"},
        {**TOOL, "state": "input-streaming"},
        {**TOOL, "state": "input-available"},
        {**TOOL, "state": "approval-requested"},
        {**TOOL, "state": "approval-requested", "approval": {"id": ""}},
        {**TOOL, "state": "approval-responded", "approval": {"id": "ap"}},
        {**TOOL, "state": "approval-responded", "approval": {"id": "ap", "approved": "yes"}},
        {**TOOL, "state": "unheard-of"},
        TOOL,
    ],
)
def test_a_part_that_a_driver_cannot_use_is_left_out(part: dict[str, Any]) -> None:
    assert read_parts([part]) == ()


@pytest.mark.parametrize(
    ("facts", "rest"),
    [
        (
            {"state": "approval-requested", "approval": {"id": "ap"}},
            (ApprovalRequestPart("ap", "t1"),),
        ),
        (
            {"state": "approval-responded", "approval": {"id": "ap", "approved": True}},
            (
                ApprovalRequestPart("ap", "t1"),
                ApprovalDecisionPart("ap", approved=True),
            ),
        ),
        ({"state": "output-available"}, (ToolResultPart("t1", "pay"),)),
        ({"state": "output-available", "output": 0}, (ToolResultPart("t1", "pay", 0),)),
        ({"output": None}, (ToolResultPart("t1", "pay", None),)),
        ({"output": False, "state": "odd"}, (ToolResultPart("t1", "pay", False),)),  # noqa: FBT003 - an output
        ({"state": "output-error", "errorText": "x"}, (failed("x"),)),
        ({"state": "output-error", "output": 1}, (failed("failed", 1),)),
        ({"errorText": "x"}, (failed("x"),)),
        ({"state": "output-denied"}, (failed("denied"),)),
        ({"state": "output-denied", "approval": {"id": "ap", "reason": "no"}}, (failed("no"),)),
    ],
)
def test_a_tool_is_its_call_and_what_came_of_it(
    facts: dict[str, Any], rest: tuple[ModelPart, ...]
) -> None:
    assert read_parts([{**TOOL, **facts}]) == (CALL, *rest)


@pytest.mark.parametrize(
    ("part", "name", "call_id"),
    [
        ({"type": "dynamic-tool", "toolName": "a", "name": "b"}, "a", "a-1"),
        ({"type": "dynamic-tool", "name": "b", "id": "i"}, "b", "i"),
        ({"type": "tool-c", "toolName": "a", "toolCallId": "t", "id": "i"}, "a", "t"),
        ({"type": "tool-c-d"}, "c-d", "c-d-1"),
        ({"type": "tool-call", "state": "output-available"}, "call", "call-1"),
        ({"type": "tool-result", "state": "odd", "name": "x"}, "x", "x-1"),
    ],
)
def test_a_tool_is_named_by_its_names_or_its_type(
    part: dict[str, Any], name: str, call_id: str
) -> None:
    found = read_parts([{**part, "output": 1}])
    assert found == (ToolCallPart(call_id, name), ToolResultPart(call_id, name, 1))


def test_ids_count_from_the_place_among_all_parts() -> None:
    parts: list[Part] = [
        {"type": "odd"},
        {"type": "text", "text": "a"},
        {"type": "tool-x", "output": 1},
    ]
    found = read_parts(parts)
    assert found == (
        TextPart("a", "text-1"),
        ToolCallPart("x-3", "x"),
        ToolResultPart("x-3", "x", 1),
    )


def test_parts_that_are_values_stay() -> None:
    assert read_parts([CALL, {"type": "odd"}]) == (CALL,)


def test_messages_keep_their_order_and_get_names_by_place() -> None:
    roles = ["system", "user", "assistant", "tool", "developer", ""]
    found = to_model_messages([Message(None, role, ()) for role in roles])
    assert [each.role for each in found] == ["system", "user", "assistant", "tool", "user", "user"]
    assert [each.id for each in found] == [f"ui-{index}" for index in range(6)]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "x"},
        {"type": "text", "text": "\N{ZERO WIDTH SPACE}😀"},
        {"type": "data-x", "data": None},
        {"type": "image", "mediaType": "image/png", "url": "https://x/i"},
        {**TOOL, "output": None},
        {**TOOL, "state": "approval-requested", "approval": {"id": "ap"}},
    ],
)
def test_a_message_that_says_something_is_accepted(part: dict[str, Any]) -> None:
    check_not_empty(message(part))
    assert not is_blank(message(part))


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [{"type": "text", "text": " \t\n\N{NO-BREAK SPACE}\N{ZERO WIDTH SPACE}"}],
        [{"type": "reasoning", "provider": "p", "text": "x"}],
        [{"type": "step-start"}, {"type": "text", "text": ""}],
        [TOOL],
    ],
)
def test_a_message_that_says_nothing_is_refused(parts: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError) as caught:
        check_not_empty(message(*parts), "messages[3]")
    assert (caught.value.code, caught.value.path) == ("empty_message", "messages[3]")
    assert is_blank(message(*parts))


@pytest.mark.parametrize(("text", "given"), [(5, "int"), (None, "NoneType"), (["a"], "list")])
def test_a_text_part_without_text_is_named(text: object, given: str) -> None:
    with pytest.raises(InputError) as caught:
        check_not_empty(message({"type": "step-start"}, {"type": "text", "text": text}))
    assert str(caught.value) == (
        f"messages: `text` of part 1 of the current message must be text, not {given}"
    )
    assert caught.value.code == "empty_message"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", False), (" \n", False), ("\u200d\ufeff", False), (" x ", True), ("\u0301", True)],
)
def test_text_is_visible_unless_it_is_all_blank(text: str, *, expected: bool) -> None:
    assert has_visible_text(text) is expected


def test_only_results_means_all_parts_and_at_least_one() -> None:
    result = {"type": "tool-result", "id": "t1", "name": "pay", "output": 1}
    assert is_only_tool_results(message(result, result))
    assert not is_only_tool_results(message(result, {"type": "text", "text": "x"}))
    assert not is_only_tool_results(message({**TOOL, "output": 1}))
    assert not is_only_tool_results(message())
