"""The window: which messages a call sees, and the reasons of the others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import HistoryWindow
from vitehub_chat.selection.sessions import find_places
from vitehub_chat.selection.window import cut_by_age, select_window, skipped_count

START = datetime(2026, 1, 1, tzinfo=UTC)
RESULT = {"type": "tool-result", "id": "t1", "name": "search", "output": 1}
TEXT = {"type": "text", "text": "x"}


def said(second: int | None, *, part: dict[str, Any] = TEXT) -> Message:
    """Return a message of a second, or an undated one."""
    time = None if second is None else START + timedelta(seconds=second)
    return Message(None, "user", (part,), {}, time)


def window(most: int, seconds: int | None = None) -> HistoryWindow:
    age = None if seconds is None else timedelta(seconds=seconds)
    return HistoryWindow(source="thread", max_messages=most, max_age=age)


def reasons(
    messages: Sequence[Message],
    given: HistoryWindow | None,
    retained: Sequence[int] = (),
) -> list[str]:
    found = select_window(messages, range(len(messages)), given, retained).reasons
    return [found[index] for index in range(len(messages))]


def test_the_count_has_the_current_message_in_it() -> None:
    assert reasons([said(n) for n in range(3)], window(2)) == ["over_count", "window", "current"]


def test_without_a_window_the_current_message_is_alone() -> None:
    assert reasons([said(0), said(1)], None) == ["no_window", "current"]


def test_what_is_too_old_is_cut_before_what_is_too_many() -> None:
    messages = [said(0), said(50), said(60), said(70)]
    assert reasons(messages, window(2, 30)) == ["too_old", "over_count", "window", "current"]


@pytest.mark.parametrize(
    ("seconds", "kept_from"),
    [
        ([0, 60], 0),
        ([0, 61], 1),
        ([500, 60], 0),
        ([70, 0, 70], 2),
        ([0, None, 60], 1),
        ([0, None, 10, 60], 1),
        ([0, 60, None], 2),
        ([None, 60], 0),
        ([60], 0),
        ([None], 0),
    ],
    ids=str,
)
def test_the_age_cut_goes_back_to_the_first_that_ends_it(
    seconds: list[int | None], kept_from: int
) -> None:
    messages = [said(second) for second in seconds]
    assert cut_by_age(messages, range(len(messages)), timedelta(seconds=60)) == kept_from


def test_retained_messages_stay_whatever_the_window_says() -> None:
    messages = [said(0), said(1), said(2), said(100)]
    expected = ["too_old", "retained", "too_old", "current"]
    assert reasons(messages, window(1, 5), [1]) == expected
    assert reasons(messages, None, [1]) == ["no_window", "retained", "no_window", "current"]


def test_a_retained_message_in_the_window_is_of_the_window() -> None:
    assert reasons([said(0), said(1)], window(2), [0]) == ["window", "current"]


def test_leading_results_without_their_call_go_without_a_replacement() -> None:
    messages = [said(0), said(1, part=RESULT), said(2, part=RESULT), said(3), said(4)]
    expected = ["over_count", "orphan_tool_result", "orphan_tool_result", "window", "current"]
    assert reasons(messages, window(4)) == expected


def test_the_current_message_stays_even_as_a_result() -> None:
    messages = [said(0, part=RESULT), said(1, part=RESULT)]
    assert reasons(messages, window(2)) == ["orphan_tool_result", "current"]


def test_a_result_behind_another_message_stays() -> None:
    messages = [said(0), said(1, part=RESULT), said(2)]
    assert reasons(messages, window(3)) == ["window", "window", "current"]


def test_only_members_are_looked_at() -> None:
    messages = [said(n) for n in range(4)]
    found = select_window(messages, [0, 2, 3], window(2))
    assert (list(found.kept), found.reasons) == (
        [2, 3],
        {0: "over_count", 2: "window", 3: "current"},
    )


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"chat": {"skippedCount": 2}}, 2),
        ({"chat": {"skipped_count": 2}}, 2),
        ({"chat": {"skippedCount": "2", "skipped_count": 3}}, 3),
        ({"chat": {"skippedCount": 0}}, 0),
        ({"chat": {"skippedCount": -1}}, 0),
        ({"chat": {"skippedCount": True}}, 0),
        ({"chat": {"skippedCount": 2.0}}, 0),
        ({"chat": []}, 0),
        ({"skippedCount": 2}, 0),
        ({}, 0),
    ],
)
def test_a_skipped_count_is_a_positive_integer(metadata: dict[str, Any], expected: int) -> None:
    assert skipped_count(Message("m", "user", (), metadata)) == expected


@pytest.mark.parametrize(
    ("ids", "places"),
    [
        (["a", "b", "c"], [0, 1, 2]),
        ([None, None], [0, 1]),
        (["a", "b", "a", "c"], [2, 1, 3]),
        (["a", "b", "a"], [1, 2]),
        (["a", "a", "b", "a"], [2, 3]),
        (["a", None, "a", None], [2, 1, 3]),
        (["a"], [0]),
    ],
)
def test_a_repeated_id_is_its_last_version_at_the_place_of_the_first(
    ids: list[str | None], places: list[int]
) -> None:
    assert list(find_places([Message(each, "user", ()) for each in ids])) == places
