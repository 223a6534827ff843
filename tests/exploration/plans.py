"""Plans: what may happen in a scene, and what has happened in a world so far."""

from __future__ import annotations

import copy
from datetime import timedelta

import attrs

from vitehub_chat.model.policies import ConcurrencyPolicy, SessionPolicy
from vitehub_chat.state.values import Grant

Action = tuple[str, ...]

LEASE = timedelta(seconds=30)
LOCK = "the lock"
RESCUER = "rescuer"


class BrokenRuleError(AssertionError):
    """A rule that an order of actions broke; the first argument names it."""


@attrs.frozen(kw_only=True)
class Planned:
    """A message that will be sent.

    Attributes:
        sender: Who sends it.
        thread: Where.
        wanted: The session that it asks for, or None.
        starts: Whether it begins a session.
        claim: The id that it claims, or None.
    """

    name: str
    sender: str
    thread: str = "t1"
    wanted: str | None = None
    starts: bool = False
    claim: str | None = None

    @property
    def lane(self) -> tuple[str, str | None]:
        """What messages of one run have in common."""
        return self.thread, self.wanted


@attrs.frozen(kw_only=True)
class Scene:
    """What may happen.

    Attributes:
        crashes: How many holders may die.
        passes: How often time may pass, and by how much.
        renews: Whether holders renew.
        withdraws: Whether callers may take their messages back.
        sessions: Where sessions start and end, None without.
    """

    policy: ConcurrencyPolicy
    messages: tuple[Planned, ...]
    holders: tuple[str, ...] = ("h1", "h2")
    crashes: int = 1
    passes: int = 1
    by: timedelta = LEASE
    renews: bool = False
    withdraws: bool = False
    sessions: SessionPolicy | None = None


@attrs.define
class Holder:
    """A process: the runs it carries out by ticket, and which of them it has recorded."""

    is_alive: bool = True
    runs: dict[str, Grant] = attrs.field(factory=dict)
    recorded: set[str] = attrs.field(factory=set)

    def drop(self, ticket_id: str) -> None:
        """Forget a run."""
        self.runs.pop(ticket_id, None)
        self.recorded.discard(ticket_id)

    def copy(self) -> Holder:
        """Return another one in the same situation."""
        return Holder(self.is_alive, dict(self.runs), set(self.recorded))


@attrs.define(kw_only=True)
class Past:
    """What has happened, as those who took part know it.

    Attributes:
        verdicts: What became of each message that was sent.
        arrivals: The accepted messages in order, without those that left again.
        answers: The messages of each run that was answered, in order.
        session_of: The session that each recorded message got.
        newest: The newest session of each wanted one, or of a thread without.
    """

    holders: dict[str, Holder]
    verdicts: dict[str, str] = attrs.field(factory=dict)
    arrivals: list[str] = attrs.field(factory=list)
    withdrawn: set[str] = attrs.field(factory=set)
    answers: list[tuple[str, ...]] = attrs.field(factory=list)
    session_of: dict[str, str | None] = attrs.field(factory=dict)
    newest: dict[str, str | None] = attrs.field(factory=dict)
    crashes: int = 0
    passes: int = 0

    def copy(self) -> Past:
        """Return the same past, which may go on otherwise."""
        other = copy.copy(self)
        other.holders = {name: holder.copy() for name, holder in self.holders.items()}
        other.verdicts, other.arrivals = dict(self.verdicts), list(self.arrivals)
        other.withdrawn, other.answers = set(self.withdrawn), list(self.answers)
        other.session_of, other.newest = dict(self.session_of), dict(self.newest)
        return other

    def leave(self, name: str) -> None:
        """Note that an accepted message left without a run."""
        self.withdrawn.add(name)
        self.arrivals.remove(name)

    def answered(self) -> list[str]:
        """Return the messages that were answered, by answer."""
        return [name for group in self.answers for name in group]


def names_of(run: Grant) -> tuple[str, ...]:
    """Return the messages of a run."""
    return tuple(each.ticket_id for each in run.entries)
