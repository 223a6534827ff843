"""Properties of the window and of what comes before it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.messages import ARRAYS
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import is_only_tool_results
from vitehub_chat.model.policies import HistoryWindow
from vitehub_chat.selection.sessions import find_places
from vitehub_chat.selection.window import WindowCut, select_window

WINDOWS = st.builds(
    HistoryWindow,
    source=st.just("thread"),
    max_messages=st.integers(1, 8),
    max_age=st.none() | st.integers(0, 200).map(lambda seconds: timedelta(seconds=seconds)),
)
Window = HistoryWindow | None
Array = tuple[Message, ...]


def select(array: Sequence[Message], window: Window, retained: Sequence[int] = ()) -> WindowCut:
    return select_window(array, range(len(array)), window, retained)


@given(ARRAYS, WINDOWS)
def test_a_window_is_a_suffix_of_at_most_so_many_with_the_current_last(
    array: Array, window: HistoryWindow
) -> None:
    kept = select(array, window).kept
    assert list(kept) == list(range(len(array)))[-len(kept) :]
    assert kept[-1] == len(array) - 1
    assert len(kept) <= window.max_messages


@given(ARRAYS)
def test_without_a_window_the_current_message_is_alone(array: Array) -> None:
    assert list(select(array, None).kept) == [len(array) - 1]


@given(ARRAYS, st.none() | WINDOWS, st.data())
def test_retained_messages_join_the_window_in_order(
    array: Array, window: Window, data: st.DataObject
) -> None:
    retained = data.draw(st.sets(st.integers(0, len(array) - 1)))
    plain, joined = select(array, window), select(array, window, sorted(retained))
    cut_as_orphans = {i for i, why in joined.reasons.items() if why == "orphan_tool_result"}
    kept = list(joined.kept)
    assert kept == sorted(kept)
    assert set(kept) | cut_as_orphans >= set(plain.kept) | retained
    orphans_of_plain = {i for i, why in plain.reasons.items() if why == "orphan_tool_result"}
    assert set(kept) <= set(plain.kept) | retained | orphans_of_plain


@given(ARRAYS, st.none() | WINDOWS, st.data())
def test_selecting_what_was_selected_changes_nothing(
    array: Array, window: Window, data: st.DataObject
) -> None:
    retained = data.draw(st.sets(st.integers(0, len(array) - 1)))
    kept = select(array, window, sorted(retained)).kept
    again = [array[index] for index in kept]
    still_retained = [place for place, index in enumerate(kept) if index in retained]
    assert list(select(again, window, still_retained).kept) == list(range(len(again)))


@given(ARRAYS, st.none() | WINDOWS, st.data())
def test_every_message_has_a_reason(array: Array, window: Window, data: st.DataObject) -> None:
    retained = data.draw(st.sets(st.integers(0, len(array) - 1)))
    cut = select(array, window, sorted(retained))
    assert sorted(cut.reasons) == list(range(len(array)))
    kept = [i for i, why in cut.reasons.items() if why in {"current", "window", "retained"}]
    assert sorted(kept) == list(cut.kept)
    assert cut.reasons[len(array) - 1] == "current"


@given(ARRAYS, WINDOWS)
def test_nothing_in_a_window_is_too_old(array: Array, window: HistoryWindow) -> None:
    kept = [array[index] for index in select(array, window).kept]
    latest = kept[-1].created_at
    if window.max_age is None or latest is None:
        return
    times = [message.created_at for message in kept[:-1] if message.created_at is not None]
    assert all(latest - time <= window.max_age for time in times)


@given(ARRAYS, st.none() | WINDOWS)
def test_no_window_begins_with_a_result_alone(array: Array, window: Window) -> None:
    kept = select(array, window).kept
    assert len(kept) == 1 or not is_only_tool_results(array[kept[0]])


@given(ARRAYS)
def test_repeats_become_one_message_and_the_current_stays_last(array: Array) -> None:
    current = len(array) - 1
    # A message without an id is one of its own.
    ids = [message.id or f"nameless {index}" for index, message in enumerate(array)]
    last = {id_: index for index, id_ in enumerate(ids)}
    expected = [last[id_] for id_ in dict.fromkeys(ids) if id_ != ids[current]]
    assert list(find_places(array)) == [*expected, current]


@given(ARRAYS)
def test_looking_for_repeats_again_finds_none(array: Array) -> None:
    once = [array[index] for index in find_places(array)]
    assert list(find_places(once)) == list(range(len(once)))
