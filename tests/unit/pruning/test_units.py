"""Units: which messages stay or go together, and which calls wait."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given

from tests.unit.pruning.conversations import (
    CONVERSATIONS,
    asked,
    call,
    decided,
    message,
    result,
    text,
)
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import read_parts
from vitehub_chat.model.parts import (
    ApprovalDecisionPart,
    ApprovalRequestPart,
    ToolCallPart,
    ToolResultPart,
)
from vitehub_chat.model.rows import Row
from vitehub_chat.model.units import Waiting, find_waiting, split_units

ASK, SAY = message("user", text()), message("assistant", text())


def _units(*messages: Message) -> list[list[int]]:
    return [list(unit) for unit in split_units(messages)]


def test_a_message_without_tools_is_a_unit() -> None:
    assert _units() == []
    assert _units(ASK, SAY, ASK) == [[0], [1], [2]]


def test_a_call_is_in_one_unit_with_all_of_its_results() -> None:
    calls = message("assistant", call("c1"), call("c2"))
    first, second = message("tool", result("c1")), message("tool", result("c2"))
    assert _units(ASK, calls, first, second, SAY) == [[0], [1, 2, 3], [4]]


def test_what_stands_between_a_call_and_its_result_is_in_their_unit() -> None:
    calls, results = message("assistant", call("c1")), message("tool", result("c1"))
    assert _units(calls, ASK, results, ASK) == [[0, 1, 2], [3]]


def test_units_that_overlap_are_one() -> None:
    first, second = message("assistant", call("c1")), message("assistant", call("c2"))
    answers = message("tool", result("c1")), message("tool", result("c2"))
    assert _units(first, second, *answers, ASK) == [[0, 1, 2, 3], [4]]


def test_a_result_answers_the_nearest_earlier_call_of_its_id() -> None:
    calls, results = message("assistant", call("c1")), message("tool", result("c1"))
    assert _units(calls, results, calls, results) == [[0, 1], [2, 3]]
    assert _units(calls, calls, results) == [[0], [1, 2]]


def test_a_second_result_is_bound_as_well() -> None:
    calls, results = message("assistant", call("c1")), message("tool", result("c1"))
    assert _units(calls, results, ASK, results) == [[0, 1, 2, 3]]


def test_a_result_without_an_earlier_call_binds_nothing() -> None:
    calls, results = message("assistant", call("c1")), message("tool", result("c1"))
    assert _units(results, calls) == [[0], [1]]
    assert _units(message("assistant", result("c1"), call("c1")), ASK) == [[0], [1]]


def test_a_question_and_its_decision_bind_nothing() -> None:
    assert _units(message("assistant", asked("c1")), message("user", decided("c2", "ap-c1"))) == [
        [0],
        [1],
    ]


@given(CONVERSATIONS)
def test_units_are_the_finest_that_keep_calls_and_results_together(rows: list[Row]) -> None:
    messages = [row.message for row in rows]
    bonds: list[tuple[int, int]] = []
    for index, part_message in enumerate(messages):
        for place, part in enumerate(read_parts(part_message.parts)):
            if isinstance(part, ToolResultPart):
                bonds.extend(_nearest_call(messages, index, place, part.id))
    cuts = [
        cut
        for cut in range(1, len(messages))
        if not any(first < cut <= last for first, last in bonds)
    ]
    edges = [0, *cuts, len(messages)] if messages else [0]
    expected = [range(first, last) for first, last in pairwise(edges)]
    assert list(split_units(messages)) == expected


def _nearest_call(
    messages: list[Message], index: int, place: int, call_id: str
) -> list[tuple[int, int]]:
    for earlier in range(index, -1, -1):
        parts = read_parts(messages[earlier].parts)
        before = parts[:place] if earlier == index else parts
        if any(isinstance(part, ToolCallPart) and part.id == call_id for part in before):
            return [(earlier, index)]
    return []


CALLED = message("assistant", call("c1"))
ASKED = message("assistant", asked("c1"))


@pytest.mark.parametrize(
    ("messages", "undecided", "calls"),
    [
        ([ASK, SAY], set(), set()),
        ([ASK, CALLED], set(), {1}),
        ([CALLED, ASK], set(), set()),
        ([ASK, CALLED, SAY], set(), {1}),
        ([ASK, CALLED, message("tool", result("c1"))], set(), set()),
        ([message("assistant", call("c1"), call("c2")), message("tool", result("c1"))], set(), {0}),
        ([ASK, ASKED], {1}, {1}),
        ([ASKED, ASK, SAY], {0}, {0}),
        ([ASKED, message("tool", result("c1")), ASK], set(), set()),
        ([ASK, message("assistant", decided("c1"))], set(), {1}),
        ([message("assistant", decided("c1")), ASK], set(), set()),
        ([CALLED, message("tool", result("c1")), ASKED, ASK], {2}, {2}),
    ],
)
def test_a_call_waits_for_a_decision_or_until_the_next_user_message(
    messages: list[Message], undecided: set[int], calls: set[int]
) -> None:
    waiting = find_waiting(messages)
    assert waiting == Waiting(undecided=frozenset(undecided), calls=frozenset(calls))


def test_a_question_apart_from_its_call_waits_with_it() -> None:
    question = Message(None, "assistant", (ApprovalRequestPart("ap", "c1"),))
    decision = Message(None, "user", (ApprovalDecisionPart("ap", approved=False),))
    waiting = find_waiting([CALLED, ASK, question])
    assert waiting == Waiting(undecided=frozenset({0, 2}), calls=frozenset({0}))
    assert find_waiting([CALLED, question, decision]).undecided == set()


def test_a_decision_before_the_question_decides_nothing() -> None:
    decision = Message(None, "user", (ApprovalDecisionPart("ap-c1", approved=True),))
    assert find_waiting([decision, ASKED]).undecided == {1}
