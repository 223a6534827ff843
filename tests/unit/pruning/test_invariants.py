"""Invariants of pruning, for any conversation and any rules."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.pruning.conversations import CALM_CONVERSATIONS, CONVERSATIONS, NOW
from vitehub_chat.model.rows import Row
from vitehub_chat.model.units import find_waiting, split_units
from vitehub_chat.selection.pruning import PrunePlan, PrunePolicy, find_expired, plan_prune
from vitehub_chat.selection.tokens import BUILT_IN
from vitehub_chat.selection.tokens_counter import TokenCounter

COUNTERS = st.sampled_from([*BUILT_IN.values()])
POLICIES = st.builds(
    PrunePolicy,
    enabled=st.sampled_from([True, True, True, False]),
    max_age=st.none() | st.integers(0, 100).map(lambda hours: timedelta(hours=hours)),
    max_messages=st.none() | st.integers(0, 8),
    max_tokens=st.none() | st.integers(0, 100),
    preserve_system=st.booleans(),
    message_overhead=st.integers(0, 3),
)


def _left(rows: list[Row], plan: PrunePlan) -> list[Row]:
    return [row for row in rows if row.seq in set(plan.kept)]


def _seqs(rows: list[Row]) -> tuple[int, ...]:
    return tuple(row.seq for row in rows)


def _others(rows: list[Row], policy: PrunePolicy) -> list[Row]:
    return [row for row in rows if not (policy.preserve_system and row.message.role == "system")]


def _units(rows: list[Row]) -> list[list[Row]]:
    return [rows[unit.start : unit.stop] for unit in split_units([row.message for row in rows])]


def _awaiting(rows: list[Row]) -> set[int]:
    undecided = find_waiting([row.message for row in rows]).undecided
    seqs = {rows[index].seq for index in undecided}
    return {seq for unit in _units(rows) if seqs & {*_seqs(unit)} for seq in _seqs(unit)}


@given(CONVERSATIONS, POLICIES, COUNTERS)
def test_kept_and_removed_make_up_the_input(
    rows: list[Row], policy: PrunePolicy, counter: TokenCounter
) -> None:
    plan = plan_prune(rows, policy, NOW, counter)
    assert plan.kept == _seqs(_left(rows, plan))
    assert tuple(sorted((*plan.kept, *plan.removed.all))) == _seqs(rows)


@given(CONVERSATIONS, POLICIES, COUNTERS)
def test_pruning_again_changes_nothing(
    rows: list[Row], policy: PrunePolicy, counter: TokenCounter
) -> None:
    plan = plan_prune(rows, policy, NOW, counter)
    again = plan_prune(_left(rows, plan), policy, NOW, counter)
    assert again.removed.all == ()
    assert (again.kept, again.tokens, again.over_budget) == (
        plan.kept,
        plan.tokens,
        plan.over_budget,
    )


@given(CONVERSATIONS, POLICIES, COUNTERS)
def test_pinned_stay_and_units_stay_whole(
    rows: list[Row], policy: PrunePolicy, counter: TokenCounter
) -> None:
    plan = plan_prune(rows, policy, NOW, counter)
    others = _others(rows, policy)
    assert {*_seqs(rows)} - {*_seqs(others)} <= {*plan.kept}
    for unit in _units(others):
        assert len({*_seqs(unit)} & {*plan.kept}) in {0, len(unit)}


@given(CONVERSATIONS, POLICIES, COUNTERS)
def test_count_and_tokens_hold_unless_what_must_stay_is_more(
    rows: list[Row], policy: PrunePolicy, counter: TokenCounter
) -> None:
    plan = plan_prune(rows, policy, NOW, counter)
    left = _others(_left(rows, plan), policy)
    newest = {*_seqs(_units(left)[-1])} if left else set()
    must_stay = newest | _awaiting(left)
    is_least = {*_seqs(left)} == must_stay
    if policy.enabled and policy.max_messages is not None:
        assert len(left) <= policy.max_messages or is_least
    if policy.enabled and policy.max_tokens is not None:
        assert plan.over_budget == (plan.tokens > policy.max_tokens)
        assert not plan.over_budget or is_least
    else:
        assert not plan.over_budget


@given(CONVERSATIONS, POLICIES, COUNTERS)
def test_tokens_are_the_size_of_what_stays(
    rows: list[Row], policy: PrunePolicy, counter: TokenCounter
) -> None:
    plan = plan_prune(rows, policy, NOW, counter)
    overhead = policy.message_overhead
    assert plan.tokens == sum(
        counter.count_message(row.message, overhead=overhead) for row in _left(rows, plan)
    )


@given(CONVERSATIONS, POLICIES, COUNTERS)
def test_what_has_expired_is_what_age_takes(
    rows: list[Row], policy: PrunePolicy, counter: TokenCounter
) -> None:
    assert find_expired(rows, policy, NOW) == plan_prune(rows, policy, NOW, counter).removed.age


@given(CALM_CONVERSATIONS, POLICIES, COUNTERS)
def test_what_is_kept_is_a_suffix_when_times_do_not_decrease(
    rows: list[Row], policy: PrunePolicy, counter: TokenCounter
) -> None:
    others = _seqs(_others(rows, policy))
    kept = [seq for seq in others if seq in plan_prune(rows, policy, NOW, counter).kept]
    assert kept == list(others[len(others) - len(kept) :])


@given(CALM_CONVERSATIONS, POLICIES, COUNTERS, st.integers(0, 100))
def test_a_later_pruning_keeps_no_more_when_times_do_not_decrease(
    rows: list[Row], policy: PrunePolicy, counter: TokenCounter, hours: int
) -> None:
    later = plan_prune(rows, policy, NOW + timedelta(hours=hours), counter)
    assert {*later.kept} <= {*plan_prune(rows, policy, NOW, counter).kept}
