"""Choices: which messages are condensed next, which are left out, and where a text is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import (
    ApprovalDecisionPart,
    ApprovalRequestPart,
    ModelPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from vitehub_chat.selection.batches import choose_batch
from vitehub_chat.selection.clipping import clip
from vitehub_chat.selection.trimming import Trim, trim

USER = Message("u", "user", (TextPart("hi"),))
ANSWER = Message("a", "assistant", (TextPart("hello"),))


def calls(*ids: str, also: tuple[ModelPart, ...] = ()) -> Message:
    parts = tuple(ToolCallPart(each, "get") for each in ids)
    return Message("c", "assistant", (*parts, *also))


def results(*ids: str) -> Message:
    return Message("r", "tool", tuple(ToolResultPart(each, "get", "ok") for each in ids))


def test_units_are_taken_until_there_are_enough() -> None:
    verbatim = [USER, calls("1", "2"), results("1"), results("2"), ANSWER, USER]
    assert [
        choose_batch(verbatim, [USER], wanted=wanted, room=6) for wanted in (1, 2, 4, 5, 99)
    ] == [1, 4, 4, 5, 6]


def test_a_unit_that_does_not_fit_into_the_room_stays() -> None:
    verbatim = [USER, calls("1"), results("1"), ANSWER]
    assert [choose_batch(verbatim, [USER], wanted=4, room=room) for room in (0, 1, 2, 3)] == [
        0,
        1,
        1,
        3,
    ]


def test_a_call_that_the_current_message_leaves_behind_is_condensed() -> None:
    assert choose_batch([calls("1"), ANSWER], [USER], wanted=2, room=2) == 2


def test_a_call_that_may_still_be_answered_ends_the_batch() -> None:
    assert choose_batch([USER, calls("1")], [], wanted=9, room=2) == 1


@pytest.mark.parametrize(("decided", "taken"), [(False, 1), (True, 3)])
def test_a_call_whose_approval_is_open_is_kept_whatever_is_said_behind_it(
    *, decided: bool, taken: int
) -> None:
    asked = calls("1", also=(ApprovalRequestPart("ask", "1"),))
    answered = Message("d", "user", (ApprovalDecisionPart("ask", approved=False),))
    behind = [answered, USER] if decided else [USER]
    assert choose_batch([USER, asked, USER], behind, wanted=9, room=3) == taken


def test_an_answer_that_is_being_written_ends_the_batch() -> None:
    assert choose_batch([USER, ANSWER, USER], [USER], wanted=9, room=3, pending={1}) == 1


def test_what_fits_is_not_trimmed() -> None:
    assert trim([USER, ANSWER], lambda dropped: 10 - dropped, 10) == Trim(0, 10, is_over=False)


def test_whole_units_are_left_out_from_the_oldest_on() -> None:
    verbatim = [USER, calls("1"), results("1"), ANSWER]
    assert trim(verbatim, lambda dropped: 10 - dropped, 8) == Trim(3, 7, is_over=False)


def test_what_does_not_fit_without_any_message_is_over() -> None:
    assert trim([USER], lambda dropped: 10 - dropped, 8) == Trim(1, 9, is_over=True)


@pytest.mark.parametrize(
    ("text", "most", "clipped"),
    [
        ("short", 5, "short"),
        ("aaaaaaaaaa", 4, "aaaa"),
        ("one two\nthree four", 12, "one two"),
        ("one.\ntwo three four five", 12, "one.\ntwo thr"),
        ("One two. Three four", 12, "One two."),
        ("One. Two three four", 12, "One. Two thr"),
        ("一二三。四五六七", 6, "一二三。"),
        ("1.5 is more than 1.25 by a bit", 9, "1.5 is mo"),
    ],
)
def test_a_text_is_cut_at_a_line_or_sentence_of_its_second_half(
    text: str, most: int, clipped: str
) -> None:
    assert clip(text, most, len) == clipped


@given(st.text(), st.integers(min_value=0, max_value=40))
def test_a_clipped_text_is_a_prefix_that_fits(text: str, most: int) -> None:
    found = clip(text, most, len)
    assert text.startswith(found)
    assert len(found) <= most
