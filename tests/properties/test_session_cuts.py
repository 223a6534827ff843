"""Properties of sessions in an array."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.messages import ARRAYS, START, messages
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.model.requests import SessionChoice
from vitehub_chat.selection.session_ids import own_id, usable_id, wanted_id
from vitehub_chat.selection.sessions import (
    Array,
    SessionCut,
    cut_session,
    cut_stored_session,
    find_places,
    name_session,
)

TIMEOUTS = st.integers(0, 200).map(lambda seconds: timedelta(seconds=seconds))
POLICIES = st.builds(SessionPolicy) | st.builds(
    SessionPolicy, strategy=st.sampled_from(["idle-timeout", "hybrid"]), idle_timeout=TIMEOUTS
)
CHOICES = st.builds(
    SessionChoice,
    action=st.sampled_from(["continue", "switch", "new"]),
    id=st.sampled_from([None, "s", "z", "unknown"]),
)
NAMED = st.sampled_from([None, "k"])
Messages = tuple[Message, ...]


def array_of(given_messages: Messages) -> Array:
    return Array(messages=given_messages, places=find_places(given_messages))


def cut(given_messages: Messages, policy: SessionPolicy, choice: SessionChoice) -> SessionCut:
    return cut_session(array_of(given_messages), policy, choice)


@given(ARRAYS, POLICIES, CHOICES)
def test_a_cut_divides_the_array_and_keeps_the_current_last(
    array: Messages, policy: SessionPolicy, choice: SessionChoice
) -> None:
    places, found = find_places(array), cut(array, policy, choice)
    assert found.members[-1] == len(array) - 1
    assert sorted([*found.members, *found.cut], key=list(places).index) == list(places)
    assert [index for index in places if index in set(found.members)] == list(found.members)


@given(ARRAYS, POLICIES, CHOICES)
def test_cutting_a_session_again_changes_nothing(
    array: Messages, policy: SessionPolicy, choice: SessionChoice
) -> None:
    members = tuple(array[index] for index in cut(array, policy, choice).members)
    again = cut(members, policy, choice)
    assert list(again.members) == list(range(len(members)))
    assert not again.has_gap


@given(ARRAYS, POLICIES, CHOICES)
def test_no_session_has_a_silence_longer_than_the_timeout(
    array: Messages, policy: SessionPolicy, choice: SessionChoice
) -> None:
    members = [array[index] for index in cut(array, policy, choice).members]
    times = [message.created_at for message in members if message.created_at is not None]
    if policy.idle_timeout is not None:
        assert all(later - earlier <= policy.idle_timeout for earlier, later in pairwise(times))


@given(ARRAYS, POLICIES, CHOICES)
def test_all_members_but_the_current_have_the_wanted_id(
    array: Messages, policy: SessionPolicy, choice: SessionChoice
) -> None:
    wanted = wanted_id(choice, array[-1], policy)
    members = cut(array, policy, choice).members[:-1]
    if policy.strategy != "idle-timeout" or wanted is not None:
        assert {own_id(array[index].metadata, None) for index in members} <= {wanted}


@given(ARRAYS, POLICIES, st.sampled_from([None, "s"]))
def test_a_new_session_is_the_current_message_alone(
    array: Messages, policy: SessionPolicy, session_id: str | None
) -> None:
    choice = SessionChoice(action="new", id=session_id)
    assert list(cut(array, policy, choice).members) == [len(array) - 1]


@given(ARRAYS, CHOICES)
def test_off_everything_is_one_session(array: Messages, choice: SessionChoice) -> None:
    found = cut_session(array_of(array), None, choice)
    assert list(found.members) == list(find_places(array))
    assert name_session(array_of(array), found, None, choice) == choice.id


@given(ARRAYS, POLICIES, CHOICES, st.integers(0, 300))
def test_a_stored_session_is_a_suffix_of_the_partition(
    array: Messages, policy: SessionPolicy, choice: SessionChoice, seconds: int
) -> None:
    def stored(*, has_beginning: bool) -> SessionCut:
        return cut_stored_session(
            array_of(array),
            cut(array, policy, choice),
            first_message_id="b",
            started_at=START + timedelta(seconds=seconds),
            has_beginning=has_beginning,
        )

    whole, found = stored(has_beginning=False), stored(has_beginning=True)
    assert list(found.members) == list(whole.members)[-len(found.members) :]
    assert sorted([*found.members, *found.cut]) == sorted(find_places(array))


@given(st.lists(messages(st.uuids().map(str)), min_size=1, max_size=12), TIMEOUTS)
def test_a_session_has_one_name_while_its_beginning_is_loaded(
    array: list[Message], timeout: timedelta
) -> None:
    policy = SessionPolicy(strategy="idle-timeout", idle_timeout=timeout)
    begin = cut(tuple(array), policy, SessionChoice()).members[0]
    # An undated message belongs to the one before it, which has to be loaded with it.
    starts = [index for index in range(begin) if array[index].created_at is not None]
    loaded = [tuple(array[start:]) for start in (*starts, begin)]
    cuts = [(array_of(each), cut(each, policy, SessionChoice())) for each in loaded]
    names = {name_session(each, found, policy, SessionChoice()) for each, found in cuts}
    assert names == {f"idle:{array[begin].id}"}


PLACES = ("sessionId", "session_id", "chatSessionId", "chat_session_id")
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just({})
)


def is_usable(value: Any) -> bool:
    return (type(value) is str and value != "") or type(value) is int


@given(VALUES)
def test_usable_are_texts_and_integers(value: Any) -> None:
    assert usable_id(value) == (str(value) if is_usable(value) else None)


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("k", *PLACES), VALUES)),
    st.fixed_dictionaries({}, optional=dict.fromkeys(("sessionId", "session_id"), VALUES)),
    st.fixed_dictionaries({}, optional={"id": VALUES}),
    NAMED,
)
def test_the_first_usable_place_is_the_own_id(
    flat: dict[str, Any], chat: dict[str, Any], session: dict[str, Any], key: str | None
) -> None:
    candidates = [
        *([] if key is None else [flat.get(key)]),
        *(flat.get(place) for place in PLACES),
        *(chat.get(place) for place in ("sessionId", "session_id")),
        session.get("id"),
    ]
    expected = next((str(value) for value in candidates if is_usable(value)), None)
    assert own_id({**flat, "chat": chat, "session": session}, key) == expected


@given(NAMED, VALUES, VALUES)
def test_places_of_another_shape_are_passed_over(key: str | None, chat: Any, session: Any) -> None:
    assert own_id({"chat": chat, "session": session}, key) is None
