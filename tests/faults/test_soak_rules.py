"""The rules of a soak notice what they are there for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import pytest

from tests.faults.soak_rules import (
    Accepted,
    Stored,
    Thread,
    check_each_is_answered_once,
    check_one_writer,
    check_order,
    check_sessions,
)

FIRST, SECOND = "t1 s0 a0", "t1 s1 b1"


def said(text: str) -> Stored:
    return Stored(text, "user", "complete", text, text[:5])


def answered(text: str) -> Stored:
    return Stored(f"re {text}", "assistant", "complete", text, text[:5])


def thread(rows: Sequence[Stored]) -> Thread:
    """Return a thread of two turns, whose rows were stored in some order."""
    accepted = [
        Accepted(place, f"ticket {text}", text, f"ticket {text}", is_ended=True)
        for place, text in enumerate((FIRST, SECOND))
    ]
    return Thread(rows, accepted, {row.message_id: f"ticket {row.text}" for row in rows})


GOOD = [said(FIRST), answered(FIRST), said(SECOND), answered(SECOND)]


def check_answers(found: Thread) -> None:
    check_each_is_answered_once(found, {FIRST, SECOND}, {FIRST: FIRST, SECOND: SECOND})


CHECKS = [check_answers, check_sessions, check_order, check_one_writer]


@pytest.mark.parametrize("check", CHECKS)
def test_turns_one_after_the_other_break_no_rule(check: Callable[[Thread], None]) -> None:
    check(thread(GOOD))


@pytest.mark.parametrize(
    ("check", "rows"),
    [
        (check_answers, GOOD[:3]),
        (check_answers, [*GOOD, attrs.evolve(GOOD[1], message_id="again")]),
        (check_answers, [*GOOD, attrs.evolve(GOOD[0], message_id="again")]),
        (check_sessions, [*GOOD[:3], attrs.evolve(GOOD[3], session_id="t1 s0")]),
        (check_order, [*GOOD[2:], *GOOD[:2]]),
        (check_one_writer, [GOOD[0], GOOD[2], GOOD[1], GOOD[3]]),
    ],
)
def test_a_broken_rule_is_noticed(check: Callable[[Thread], None], rows: list[Stored]) -> None:
    with pytest.raises(AssertionError):
        check(thread(rows))


def test_messages_of_a_session_are_stored_by_arrival() -> None:
    found = thread([said(SECOND), said(FIRST)])
    rows = [attrs.evolve(row, session_id="t1 s0") for row in found.rows]
    with pytest.raises(AssertionError):
        check_order(attrs.evolve(found, rows=rows))
