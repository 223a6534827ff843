"""Limits: how much a model takes, and from which size on history is condensed."""

from __future__ import annotations

from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal

import attrs

from vitehub_chat.errors import ConfigError
from vitehub_chat.model.context_policy import FALLBACK_WINDOW, ContextPolicy
from vitehub_chat.model.estimates import SizeUnit

_LEAST_RESERVE = 4096
_MOST_RESERVE = 16_384
_SUMMARY_TOKENS = 1500
_SUMMARY_PART = Decimal("0.15")
_TENTH = Decimal("0.1")


@attrs.frozen(kw_only=True)
class Limits:
    """The budget of one call, in the unit of the estimator.

    Attributes:
        limit: The whole budget.
        trigger: Above which size condensing begins.
        target: Down to which size it goes.
        hard_cap: An absolute ceiling, or None.
        summary_max: How long the summary may be.
        resolved_window: Whether somebody said how much the model takes.
    """

    limit: int
    trigger: int
    target: int
    hard_cap: int | None
    summary_max: int
    resolved_window: bool

    @property
    def cap(self) -> int:
        """What a call may use at most."""
        return self.limit if self.hard_cap is None else min(self.limit, self.hard_cap)

    def is_over_trigger(self, size: int) -> bool:
        """Tell whether a size is one at which condensing begins."""
        return size > self.trigger or self._is_over_cap(size)

    def is_over_target(self, size: int) -> bool:
        """Tell whether a size is one at which condensing goes on."""
        return size > self.target or self._is_over_cap(size)

    def aiming_at(self, ratio: Decimal) -> Limits:
        """Return the same limits with another target, at which condensing begins, too."""
        target = part_of(self.limit, ratio)
        return attrs.evolve(self, trigger=target, target=target)

    def _is_over_cap(self, size: int) -> bool:
        return self.hard_cap is not None and size > self.hard_cap


def limits_for(policy: ContextPolicy, unit: SizeUnit, window_tokens: int | None) -> Limits:
    """Return the budget of a call of a model.

    Args:
        policy: What was decided.
        unit: What is counted.
        window_tokens: How much the model takes as far as its driver knows, or None.

    Raises:
        ConfigError: Nothing is left of the window beside the reserve for the answer.
    """
    window = policy.window_tokens or window_tokens
    rate = Decimal(str(policy.runes_per_token)) if unit == "runes" else Decimal(1)
    limit = policy.limit
    if limit is None:
        limit = _limit_of(policy, window or FALLBACK_WINDOW, rate)
    summary_max = policy.summary_max
    if summary_max is None:
        summary_max = min(_floor(_SUMMARY_TOKENS * rate), part_of(limit, _SUMMARY_PART))
    return Limits(
        limit=limit,
        trigger=part_of(limit, policy.trigger_ratio),
        target=part_of(limit, policy.target_ratio),
        hard_cap=policy.hard_cap,
        summary_max=max(summary_max, 1),
        resolved_window=policy.limit is not None or window is not None,
    )


def part_of(limit: int, ratio: Decimal) -> int:
    """Return a part of a limit, rounded down; exact, so that 0.29 of 100 is 29."""
    return _floor(ratio * limit)


def percent_of(used: int, limit: int) -> float:
    """Return 100 times used by limit with one decimal, half up."""
    exact = Decimal(100) * used / limit
    return float(exact.quantize(_TENTH, rounding=ROUND_HALF_UP))


def _limit_of(policy: ContextPolicy, window: int, rate: Decimal) -> int:
    reserve = policy.reserve_output_tokens
    if reserve is None:
        reserve = max(_LEAST_RESERVE, min(_MOST_RESERVE, window // 8))
    limit = _floor((window - reserve) * rate)
    if limit < 1:
        raise ConfigError(
            f"leaves nothing of a window of {window} tokens",
            path="context.reserve_output_tokens",
            hint="set a smaller reserve, or context.limit",
        )
    return limit


def _floor(value: Decimal) -> int:
    return int(value.to_integral_value(rounding=ROUND_FLOOR))
