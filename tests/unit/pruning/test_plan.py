"""Pruning: what each rule takes, and what none of them may."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.pruning.conversations import (
    NOW,
    asked,
    call,
    decided,
    message,
    result,
    rows_of,
    text,
)
from vitehub_chat.model.rows import Row
from vitehub_chat.selection.pruning import (
    PrunePlan,
    PrunePolicy,
    RemovedSeqs,
    find_expired,
    plan_prune,
)
from vitehub_chat.selection.tokens import CHARS4, SEGMENTS

HOUR = timedelta(hours=1)
OFF = PrunePolicy(max_age=None, max_messages=None, max_tokens=None)
ASK, SAY = message("user", text()), message("assistant", text())
ASKED = message("assistant", asked("c1"))


def _plan(rows: list[Row], before_seq: int | None = None, **options: Any) -> PrunePlan:
    policy = PrunePolicy(**{"max_age": None, "max_messages": None, "max_tokens": None, **options})
    spared = [row.seq for row in rows if before_seq is not None and row.seq >= before_seq]
    return plan_prune(rows, policy, NOW, CHARS4, spared=spared)


def test_an_empty_conversation_keeps_nothing() -> None:
    assert _plan([], max_messages=1) == PrunePlan(
        kept=(), removed=RemovedSeqs(), tokens=0, over_budget=False
    )


def test_zero_and_none_switch_a_rule_off() -> None:
    zero = PrunePolicy(max_age=timedelta(0), max_messages=0, max_tokens=0)
    assert zero == OFF


def test_switched_off_nothing_goes() -> None:
    rows = rows_of(message("user", text("x" * 400), at=NOW - 10_000 * HOUR), ASK)
    policy = PrunePolicy(enabled=False, max_messages=1, max_tokens=1)
    plan = plan_prune(rows, policy, NOW, CHARS4)
    assert (plan.kept, plan.tokens, plan.over_budget) == ((1, 2), 101, False)
    assert find_expired(rows, policy, NOW) == ()


def test_a_unit_with_an_undated_member_never_goes_for_its_age() -> None:
    old = NOW - 2 * HOUR
    rows = rows_of(
        message("assistant", call("c1"), at=old),
        message("tool", result("c1"), at=None),
        message("user", text(), at=old),
    )
    assert _plan(rows, max_age=HOUR).removed == RemovedSeqs(age=(3,))
    assert find_expired(rows, PrunePolicy(max_age=HOUR), NOW) == (3,)


def test_age_takes_from_the_middle_where_times_jump() -> None:
    old = message("user", text(), at=NOW - 2 * HOUR)
    assert _plan(rows_of(ASK, old, SAY, old), max_age=HOUR).kept == (1, 3)


def test_age_takes_what_awaits_a_decision() -> None:
    rows = rows_of(message("assistant", asked("c1"), at=NOW - 2 * HOUR), ASK)
    assert _plan(rows, max_age=HOUR).removed == RemovedSeqs(age=(1,))


def test_instead_of_what_awaits_a_decision_the_next_oldest_goes() -> None:
    plan = _plan(rows_of(ASKED, ASK, SAY, ASK), max_messages=2)
    assert plan.removed == RemovedSeqs(count=(2, 3))
    assert _plan(rows_of(ASKED, ASK, SAY, ASK), max_tokens=3).removed == RemovedSeqs(tokens=(2,))


def test_what_was_decided_goes_like_any_other() -> None:
    rows = rows_of(message("assistant", decided("c1")), ASK, SAY, ASK)
    assert _plan(rows, max_messages=2).removed == RemovedSeqs(count=(1, 2))


def test_the_newest_unit_stays_whole_above_the_count() -> None:
    calls = message("assistant", call("c1"), call("c2"))
    rows = rows_of(ASK, calls, message("tool", result("c1")), message("tool", result("c2")))
    assert _plan(rows, max_messages=1).kept == (2, 3, 4)


def test_more_pinned_tokens_than_allowed_leave_the_newest_unit() -> None:
    rows = rows_of(message("system", text("s" * 400)), ASK, SAY)
    plan = _plan(rows, max_tokens=10)
    assert (plan.kept, plan.tokens, plan.over_budget) == ((1, 3), 101, True)


def test_a_system_message_inside_a_unit_stays_where_it_is() -> None:
    rows = rows_of(
        message("assistant", call("c1")),
        message("system", text()),
        message("tool", result("c1")),
        ASK,
    )
    assert _plan(rows, max_messages=1).kept == (2, 4)


def test_the_overhead_is_that_of_the_policy() -> None:
    rows = rows_of(ASK, SAY)
    policy = PrunePolicy(message_overhead=3)
    assert plan_prune(rows, policy, NOW, CHARS4).tokens == 8
    assert plan_prune(rows, PrunePolicy(), NOW, SEGMENTS).tokens == 2


def test_count_and_tokens_take_only_rows_below_a_bound() -> None:
    rows = rows_of(ASK, message("assistant", call("c1")), message("tool", result("c1")), ASK, SAY)
    assert _plan(rows, before_seq=3, max_messages=1).removed == RemovedSeqs(count=(1,))
    assert _plan(rows, before_seq=4, max_messages=1).removed == RemovedSeqs(count=(1, 2, 3))
    assert _plan(rows, before_seq=1, max_tokens=1).over_budget


@pytest.mark.parametrize("before_seq", [None, 1])
def test_age_knows_no_bound(before_seq: int | None) -> None:
    rows = rows_of(message("user", text(), at=NOW - 2 * HOUR), ASK)
    assert _plan(rows, before_seq=before_seq, max_age=HOUR).removed == RemovedSeqs(age=(1,))


def test_all_that_goes_is_ascending() -> None:
    old = message("user", text(), at=NOW - 2 * HOUR)
    plan = _plan(rows_of(ASK, old, SAY, ASK), max_age=HOUR, max_messages=1)
    assert plan.removed == RemovedSeqs(age=(2,), count=(1, 3))
    assert plan.removed.all == (1, 2, 3)
