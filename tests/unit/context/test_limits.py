"""Limits: what a call may use, and from which size on history is condensed."""

from __future__ import annotations

from decimal import Decimal

import pytest

from vitehub_chat.errors import ConfigError
from vitehub_chat.model.context_policy import ContextPolicy
from vitehub_chat.selection.limits import limits_for, part_of, percent_of


@pytest.mark.parametrize(
    ("ratio", "limit", "part"),
    [("0.29", 100, 29), ("0.57", 100, 57), ("0.88", 1000, 880), ("1", 7, 7), ("0.1", 9, 0)],
)
def test_a_part_of_a_limit_is_exact_on_the_text_of_the_ratio(
    ratio: str, limit: int, part: int
) -> None:
    assert part_of(limit, Decimal(ratio)) == part


@pytest.mark.parametrize(
    ("used", "limit", "percent"),
    [(0, 7, 0.0), (1, 3, 33.3), (5, 8, 62.5), (333, 2000, 16.7), (45, 1000, 4.5), (3, 2, 150.0)],
)
def test_a_percentage_has_one_decimal_half_up(used: int, limit: int, percent: float) -> None:
    assert percent_of(used, limit) == percent


@pytest.mark.parametrize(
    ("window", "limit"),
    [(128_000, 112_000), (200_000, 183_616), (32_000, 27_904), (8192, 4096)],
)
def test_an_eighth_of_the_window_is_left_for_the_answer(window: int, limit: int) -> None:
    found = limits_for(ContextPolicy(), "tokens", window)
    assert (found.limit, found.resolved_window) == (limit, True)


def test_a_window_that_nobody_knows_is_128000_tokens_and_told() -> None:
    found = limits_for(ContextPolicy(), "tokens", None)
    assert (found.limit, found.resolved_window) == (112_000, False)


def test_the_option_comes_before_what_the_driver_says() -> None:
    policy = ContextPolicy(window_tokens=10_000, reserve_output_tokens=1000)
    assert limits_for(policy, "tokens", 200_000).limit == 9000


def test_a_window_is_given_in_tokens_where_runes_are_counted() -> None:
    policy = ContextPolicy(window_tokens=10_000, reserve_output_tokens=1000, runes_per_token=2.5)
    found = limits_for(policy, "runes", None)
    assert (found.limit, found.summary_max) == (22_500, 3375)


def test_a_limit_is_in_the_unit_of_the_estimator() -> None:
    assert limits_for(ContextPolicy(limit=500), "runes", None).limit == 500


@pytest.mark.parametrize(("limit", "most"), [(1000, 150), (100_000, 1500), (3, 1)])
def test_a_summary_is_1500_tokens_or_15_percent_of_the_limit(limit: int, most: int) -> None:
    assert limits_for(ContextPolicy(limit=limit), "tokens", None).summary_max == most


def test_a_reserve_that_leaves_nothing_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError) as caught:
        limits_for(ContextPolicy(), "tokens", 4096)
    assert caught.value.path == "context.reserve_output_tokens"


def test_it_is_over_strictly_above_the_trigger_and_the_cap() -> None:
    found = limits_for(ContextPolicy(limit=1000, hard_cap=900), "tokens", None)
    sizes = (700, 701, 880, 881, 900, 901)
    assert [found.is_over_trigger(size) for size in sizes] == [False] * 3 + [True] * 3
    assert [found.is_over_target(size) for size in sizes] == [False] + [True] * 5
    assert found.cap == 900


def test_a_cap_below_the_trigger_triggers_too() -> None:
    found = limits_for(ContextPolicy(limit=1000, hard_cap=500), "tokens", None)
    assert [found.is_over_trigger(size) for size in (500, 501)] == [False, True]
    assert [found.is_over_target(size) for size in (500, 501)] == [False, True]


def test_a_call_that_was_refused_is_brought_to_another_target() -> None:
    found = limits_for(ContextPolicy(limit=1000), "tokens", None).aiming_at(Decimal("0.5"))
    assert (found.trigger, found.target, found.limit) == (500, 500, 1000)
