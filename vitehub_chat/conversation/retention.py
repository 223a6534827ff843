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
        archived: The numbers of rows that may go although no summary covers them; None is all.
        plan: The newest plan, or None before the first.
    """

    policy: PrunePolicy
    now: datetime
    counter: TokenCounter
    spares_uncovered: bool = False
    archived: frozenset[int] | None = None
    plan: PrunePlan | None = None

    def choose(self, rows: Sequence[Row], uncovered: Collection[int] = ()) -> Collection[int]:
        """Return the numbers of the rows that go, told which ones no summary covers."""
        self.plan = plan_prune(
            rows,
            self.policy,
            self.now,
            self.counter,
            spared=uncovered if self.spares_uncovered else (),
            withheld=() if self.archived is None else set(uncovered) - self.archived,
        )
        return self.plan.removed.all

    @property
    def is_told_uncovered(self) -> bool:
        """Whether it has to know what no summary covers."""
        return self.spares_uncovered or self.archived is not None

    def request(self, *, session_id: str | None = None, in_passing: bool = False) -> PruneRequest:
        """Return what to ask a store for.

        Args:
            session_id: Narrows to one session, None is the whole conversation.
            in_passing: What the age rule does not reach in the order of the rows may stay for
                later; reads leave it out all the same.
        """
        return PruneRequest(
            choose=self.choose,
            choose_sparing=self.choose if self.is_told_uncovered else None,
            hides=self.policy.mode == "hide",
            session_id=session_id,
            said_before=self.oldest if in_passing else None,
        )

    @property
    def oldest(self) -> datetime | None:
        """The time before which all has to be said that goes; None if other rows may go."""
        policy = self.policy
        is_by_age = policy.max_messages is None and policy.max_tokens is None
        return self.now - policy.max_age if is_by_age and policy.max_age is not None else None


def age_limit(policy: PrunePolicy | None, now: datetime) -> AgeLimit | None:
    """Return what reading must leave out although it may still be stored."""
    if policy is None or not policy.enabled or policy.max_age is None:
        return None
    return AgeLimit(since=now - policy.max_age, spares_system=policy.preserve_system)
