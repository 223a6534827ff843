"""Sessions of an array: which messages they have, and how they are called."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.model.requests import SessionChoice
from vitehub_chat.selection.session_ids import wanted_id
from vitehub_chat.selection.sessions import Array, cut_session, find_places, name_session

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MANUAL = SessionPolicy()
IDLE = SessionPolicy(strategy="idle-timeout", idle_timeout=MINUTE)
HYBRID = SessionPolicy(strategy="hybrid", idle_timeout=MINUTE)
CONTINUE = SessionChoice()
NEW = SessionChoice(action="new")
Action = Literal["continue", "new", "switch"]


def said(
    message_id: str | None, second: int | None = None, *, session: str | None = None
) -> Message:
    time = None if second is None else START + timedelta(seconds=second)
    return Message(message_id, "user", (), {"sessionId": session} if session else {}, time)


def array_of(messages: Sequence[Message], **facts: Any) -> Array:
    return Array(messages=messages, places=find_places(messages), **facts)


def name(
    messages: Sequence[Message], policy: SessionPolicy | None, choice: SessionChoice = CONTINUE
) -> str | None:
    array = array_of(messages)
    return name_session(array, cut_session(array, policy, choice), policy, choice)


def members(messages: Sequence[Message], policy: SessionPolicy, **facts: Any) -> list[int]:
    return list(cut_session(array_of(messages, **facts), policy, CONTINUE).members)


def test_the_reasons_tell_other_sessions_from_earlier_ones() -> None:
    messages = [
        said("a", 0, session="s"),
        said("b", 1, session="z"),
        said("c", 100, session="s"),
        said("d", 110, session="s"),
    ]
    cut = cut_session(array_of(messages), HYBRID, CONTINUE)
    assert list(cut.members) == [2, 3]
    assert cut.cut == {0: "before_session", 1: "other_session"}
    assert cut.has_gap


def test_the_newest_gap_counts() -> None:
    messages = [said("a", 0), said("b", 100), said("c", 110), said("d", 300), said("e", 310)]
    assert members(messages, IDLE) == [3, 4]


def test_undated_messages_belong_to_the_message_before_them() -> None:
    messages = [said("a", 0), said("b"), said("c", 100), said("d")]
    assert members(messages, IDLE) == [2, 3]


def test_an_equal_or_negative_gap_never_cuts() -> None:
    assert members([said("a", 0), said("b", 60), said("c", 10)], IDLE) == [0, 1, 2]


def test_gaps_to_messages_of_other_sessions_do_not_count() -> None:
    messages = [said("a", 0, session="s"), said("b", 50), said("c", 100, session="s")]
    assert members(messages, HYBRID) == [2]


def test_messages_that_run_together_are_of_one_session_whatever_their_ids() -> None:
    messages = [said("a", session="z"), said("b", session="z"), said("c", session="s")]
    assert members(messages, MANUAL, coalesced=frozenset({1})) == [1, 2]


def test_a_session_that_begins_within_a_run_begins_with_its_message() -> None:
    messages = [said("a"), said("b"), said("c"), said("d")]
    cut = cut_session(array_of(messages, coalesced=frozenset({1, 2}), new_from=2), MANUAL, CONTINUE)
    assert list(cut.members) == [2, 3]
    assert cut.cut == {0: "before_session", 1: "before_session"}


@pytest.mark.parametrize(
    ("policy", "choice", "own", "expected"),
    [
        (MANUAL, CONTINUE, "own", "own"),
        (HYBRID, CONTINUE, "own", "own"),
        (IDLE, CONTINUE, "own", None),
        (MANUAL, SessionChoice(id="said"), "own", "said"),
        (IDLE, SessionChoice(id="said"), "own", "said"),
        (None, SessionChoice(id="said"), "own", "said"),
        (None, CONTINUE, "own", None),
        (MANUAL, CONTINUE, None, None),
    ],
)
def test_what_a_call_says_wins_over_what_the_message_carries(
    policy: SessionPolicy | None, choice: SessionChoice, own: str | None, expected: str | None
) -> None:
    assert wanted_id(choice, said("m", session=own), policy) == expected


@pytest.mark.parametrize(
    ("policy", "choice", "expected"),
    [
        (None, CONTINUE, None),
        (None, SessionChoice(id="s"), "s"),
        (None, NEW, None),
        (MANUAL, CONTINUE, None),
        (MANUAL, SessionChoice(id="s"), "s"),
        (MANUAL, NEW, "new:b"),
        (MANUAL, SessionChoice(action="new", id="s"), "s"),
        (IDLE, CONTINUE, "idle:a"),
        (IDLE, SessionChoice(id="s"), "s"),
        (HYBRID, CONTINUE, "idle:a"),
        (HYBRID, NEW, "new:b"),
    ],
)
def test_a_session_is_named_by_what_is_wanted_or_by_its_beginning(
    policy: SessionPolicy | None, choice: SessionChoice, expected: str | None
) -> None:
    assert name([said("a", 0), said("b", 10)], policy, choice) == expected


def test_a_gap_gives_a_wanted_id_a_suffix() -> None:
    messages = [said("a", 0, session="s"), said("b", 100, session="s")]
    assert name(messages, HYBRID) == "s:idle:b"
    assert name(messages, MANUAL) == "s"
    assert name(messages[1:], HYBRID) == "s"


def test_a_new_session_of_a_known_id_gets_a_suffix() -> None:
    messages = [said("a", session="s"), said("b")]
    assert name(messages, MANUAL, SessionChoice(action="new", id="s")) == "s:new:b"


def test_without_an_id_the_beginning_is_named_by_its_time() -> None:
    assert name([said(None, 1)], IDLE) == "idle:1767225601000"
    assert name([said(None, 1)], MANUAL, NEW) == "new:1767225601000"


def test_without_id_and_time_there_is_no_suffix() -> None:
    assert name([said(None)], IDLE) == "idle"
    assert name([said(None)], MANUAL, NEW) == "new"
