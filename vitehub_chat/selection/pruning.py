"""Pruning: which stored rows go, by age, by count and by tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta

import attrs

from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import to_model_messages
from vitehub_chat.model.policies import PrunePolicy
from vitehub_chat.model.rows import Row
from vitehub_chat.model.units import find_waiting, split_units
from vitehub_chat.selection.tokens_counter import TokenCounter

__all__ = ["PrunePlan", "PrunePolicy", "RemovedSeqs", "find_expired", "plan_prune"]


@attrs.frozen(kw_only=True)
class RemovedSeqs:
    """The numbers of the rows that each rule takes, ascending."""

    age: tuple[int, ...] = ()
    count: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()

    @property
    def all(self) -> tuple[int, ...]:
        """The numbers of all of them, ascending."""
        return tuple(sorted((*self.age, *self.count, *self.tokens)))


@attrs.frozen(kw_only=True)
class PrunePlan:
    """What pruning would do.

    Attributes:
        kept: The numbers of the rows that stay, ascending.
        removed: Those that go, by rule.
        tokens: The size of what stays.
        over_budget: What stays is larger than `max_tokens`, and nothing more may go.
    """

    kept: tuple[int, ...]
    removed: RemovedSeqs
    tokens: int
    over_budget: bool

    @classmethod
    def empty(cls) -> PrunePlan:
        """Return the plan for a conversation without rows."""
        return cls(kept=(), removed=RemovedSeqs(), tokens=0, over_budget=False)


def plan_prune(
    rows: Sequence[Row],
    policy: PrunePolicy,
    now: datetime,
    counter: TokenCounter,
    *,
    spared: Collection[int] = (),
    withheld: Collection[int] = (),
) -> PrunePlan:
    """Decide which rows go: by age, then by count, then by tokens, each on what is left.

    Rows go in whole units, the oldest first. A row is as old as its message, or if that has no time
    as its record. System messages stay in their place if the policy says
    so: they are not counted, but their tokens are. Count and tokens take neither the newest unit
    nor one that awaits an approval decision.

    Args:
        rows: The visible rows of a conversation, in order of `seq`.
        policy: The rules.
        now: The time of the pruning.
        counter: What counts tokens.
        spared: The numbers of rows that count and tokens do not take.
        withheld: The numbers of rows that no rule takes.
    """
    if not policy.enabled:
        policy = attrs.evolve(policy, max_age=None, max_messages=None, max_tokens=None)
    pinned, units = _divide(rows, policy)
    by_age, units = _take_old(units, policy.max_age, now, frozenset(withheld))
    removable = _removable(units, frozenset((*spared, *withheld)))
    by_count, units = _take_first(
        units, removable, policy.max_messages, lambda unit: len(unit.seqs)
    )
    sizes = {unit.key: unit.size(counter, policy) for unit in units}
    charged = pinned.size(counter, policy)
    room = None if policy.max_tokens is None else policy.max_tokens - charged
    by_tokens, units = _take_first(units, removable, room, lambda unit: sizes[unit.key])
    tokens = charged + sum(sizes[unit.key] for unit in units)
    return PrunePlan(
        kept=tuple(sorted(_seqs([pinned, *units]))),
        removed=RemovedSeqs(age=_seqs(by_age), count=_seqs(by_count), tokens=_seqs(by_tokens)),
        tokens=tokens,
        over_budget=policy.max_tokens is not None and tokens > policy.max_tokens,
    )


def find_expired(rows: Sequence[Row], policy: PrunePolicy, now: datetime) -> tuple[int, ...]:
    """Return the numbers of the rows that the age rule removes at a time, ascending."""
    _, units = _divide(rows, policy)
    return _seqs(_take_old(units, policy.max_age if policy.enabled else None, now)[0])


@attrs.frozen
class _Unit:
    """Rows that stay or go together."""

    seqs: tuple[int, ...]
    messages: tuple[Message, ...]
    times: tuple[datetime, ...]

    @property
    def key(self) -> int:
        return self.seqs[0]

    def size(self, counter: TokenCounter, policy: PrunePolicy) -> int:
        return sum(
            counter.count_message(message, overhead=policy.message_overhead)
            for message in self.messages
        )

    def is_older(self, age: timedelta, now: datetime) -> bool:
        return all(now - time > age for time in self.times)


def _divide(rows: Sequence[Row], policy: PrunePolicy) -> tuple[_Unit, Sequence[_Unit]]:
    """Return the pinned rows, and the units that the others form."""
    messages = to_model_messages([row.message for row in rows])
    pinned: list[int] = []
    others: list[int] = []
    for index, message in enumerate(messages):
        is_pinned = policy.preserve_system and message.role == "system"
        (pinned if is_pinned else others).append(index)

    def unit_of(indices: Sequence[int]) -> _Unit:
        return _Unit(
            tuple(rows[index].seq for index in indices),
            tuple(messages[index] for index in indices),
            tuple(rows[index].said_at for index in indices),
        )

    places = split_units([messages[index] for index in others])
    return unit_of(pinned), [unit_of(others[place.start : place.stop]) for place in places]


def _take_old(
    units: Sequence[_Unit],
    age: timedelta | None,
    now: datetime,
    withheld: frozenset[int] = frozenset(),
) -> tuple[Sequence[_Unit], Sequence[_Unit]]:
    """Return the units of which all is known to be strictly older, and the others."""
    if age is None:
        return (), units
    old: list[_Unit] = []
    left: list[_Unit] = []
    for unit in units:
        is_taken = unit.is_older(age, now) and withheld.isdisjoint(unit.seqs)
        (old if is_taken else left).append(unit)
    return old, left


def _removable(units: Sequence[_Unit], spared: frozenset[int]) -> frozenset[int]:
    """Return the keys of the units that count and tokens may take."""
    owners = [unit.key for unit in units for _ in unit.seqs]
    waiting = find_waiting([message for unit in units for message in unit.messages])
    awaiting = {owners[index] for index in waiting.undecided}
    return frozenset(
        unit.key for unit in units[:-1] if unit.key not in awaiting and spared.isdisjoint(unit.seqs)
    )


def _take_first(
    units: Sequence[_Unit],
    removable: Collection[int],
    limit: int | None,
    weight: Callable[[_Unit], int],
) -> tuple[Sequence[_Unit], Sequence[_Unit]]:
    """Return the oldest units that have to go until the limit holds, and the others."""
    if limit is None:
        return (), units
    excess = sum(map(weight, units)) - limit
    taken: list[_Unit] = []
    left: list[_Unit] = []
    for unit in units:
        if excess > 0 and unit.key in removable:
            excess -= weight(unit)
            taken.append(unit)
        else:
            left.append(unit)
    return taken, left


def _seqs(units: Iterable[_Unit]) -> tuple[int, ...]:
    return tuple(seq for unit in units for seq in unit.seqs)
