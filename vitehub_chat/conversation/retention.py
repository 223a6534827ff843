"""Retention: the rules of pruning, as the stores ask for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

import attrs

from vitehub_chat.model.policies import PrunePolicy
from vitehub_chat.model.rows import Row
from vitehub_chat.selection.pruning import PrunePlan, plan_prune
from vitehub_chat.selection.tokens_counter import TokenCounter
from vitehub_chat.state.row_requests import AgeLimit, PruneRequest


@attrs.define
class Pruner:
    """Plans what goes, and remembers the plan that was carried out.

    Attributes:
        policy: The rules.
        now: The time of the pruning.
        counter: What counts tokens.
        spares_uncovered: Whether count and tokens take only what a summary of its session covers.
        plan: The newest plan, or None before the first.
    """

    policy: PrunePolicy
    now: datetime
    counter: TokenCounter
    spares_uncovered: bool = False
    plan: PrunePlan | None = None

    def choose(self, rows: Sequence[Row], spared: Collection[int] = ()) -> Collection[int]:
        """Return the numbers of the rows that go; age alone takes the spared ones."""
        self.plan = plan_prune(rows, self.policy, self.now, self.counter, spared=spared)
        return self.plan.removed.all

    def request(self, *, session_id: str | None = None) -> PruneRequest:
        """Return what to ask a store for."""
        return PruneRequest(
            choose=self.choose,
            choose_sparing=self.choose if self.spares_uncovered else None,
            hides=self.policy.mode == "hide",
            session_id=session_id,
        )


def age_limit(policy: PrunePolicy | None, now: datetime) -> AgeLimit | None:
    """Return what reading must leave out although it may still be stored."""
    if policy is None or not policy.enabled or policy.max_age is None:
        return None
    return AgeLimit(since=now - policy.max_age, spares_system=policy.preserve_system)
