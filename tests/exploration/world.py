"""A world of holders and messages around one lock, whose every step is one action.

Holders do what processes do: they send messages, carry out the runs that are granted to them, look
after messages of theirs that wait, renew, stand still and die. Which one acts next is up to the
explorer. After every action the rules are checked that no order of actions may break.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import attrs

from vitehub_chat.errors import StateConflictError
from vitehub_chat.model.clock import to_epoch_us
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.state.contract import Fence, StateContext
from vitehub_chat.state.providers.memory import MemoryAgentState, open_memory
from vitehub_chat.state.records import LockRecord, RowRecord
from vitehub_chat.state.tables import RowQuery, Transaction
from vitehub_chat.state.values import Grant, NewEntry, NewRow, SessionRequest, TurnEnd
from vitehub_chat.testing.clock import FakeClock

T = TypeVar("T")
Action = tuple[str, ...]

LEASE = timedelta(seconds=30)
LOCK = "the lock"
RESCUER = "rescuer"


class BrokenRuleError(AssertionError):
    """A rule that an order of actions broke; the first argument names it."""


@attrs.frozen(kw_only=True)
class Planned:
    """A message that will be sent: who sends it, in which thread, and the id it claims."""

    name: str
    sender: str
    thread: str = "t1"
    claim: str | None = None


@attrs.frozen(kw_only=True)
class Scene:
    """What may happen.

    Attributes:
        crashes: How many holders may die.
        expiries: How often a lease may pass without anybody renewing.
        renews: Whether holders renew.
        withdraws: Whether callers may take their messages back.
    """

    policy: ConcurrencyPolicy
    messages: tuple[Planned, ...]
    holders: tuple[str, ...] = ("h1", "h2")
    crashes: int = 1
    expiries: int = 1
    renews: bool = False
    withdraws: bool = False


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


def finished(call: Coroutine[Any, Any, T]) -> T:
    """Return the answer of a call that never waits, as those of the memory provider."""
    try:
        call.send(None)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    raise AssertionError("a call of the memory provider waited")


class World:
    """A store, holders, and what they did so far."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.clock = FakeClock()
        self.state: MemoryAgentState = open_memory("memory:", clock=self.clock)
        finished(self.state.__aenter__())
        self.holders = {name: Holder() for name in scene.holders}
        self.plans = {each.name: each for each in scene.messages}
        self.verdicts: dict[str, str] = {}
        self.arrivals: list[str] = []
        self.withdrawn: set[str] = set()
        self.answers: list[tuple[str, ...]] = []
        self.crashes = 0
        self.expiries = 0

    def actions(self) -> Iterator[Action]:
        """Yield what may happen next."""
        for plan in self.scene.messages:
            if self.holders[plan.sender].is_alive:
                yield from self._of_message(plan)
        for name, holder in self.holders.items():
            for ticket_id in holder.runs:
                yield ("answer" if ticket_id in holder.recorded else "record", name, ticket_id)
                if self.scene.renews:
                    yield ("renew", name, ticket_id)
            if holder.is_alive and self.crashes < self.scene.crashes:
                yield ("crash", name)
        if self.expiries < self.scene.expiries:
            yield ("expire",)

    def act(self, action: Action) -> None:
        """Let something happen.

        Raises:
            BrokenRuleError: It should not have been possible.
        """
        before = self._live_lock()
        getattr(self, f"_{action[0]}")(*action[1:])
        self._check_lock()
        after = self._live_lock()
        is_kept = before is None or (after is not None and after.token == before.token)
        if action[0] in {"send", "look"} and not is_kept:
            raise BrokenRuleError("a lease that is not over is not taken away", action)

    def rescue(self) -> None:
        """Let all leases pass, drain the queue, and check that nothing is left or lost."""
        self.clock.advance(seconds=LEASE.total_seconds())
        for holder in self.holders.values():
            holder.runs.clear()
        self.holders[RESCUER] = Holder()
        grant = finished(self.state.turns.take(LOCK, owner=RESCUER, lease=LEASE))
        self._start(grant)
        while runs := self.holders[RESCUER].runs:
            ticket_id = next(iter(runs))
            self._record(RESCUER, ticket_id)
            self._answer(RESCUER, ticket_id)
        self._check_end()

    def fingerprint(self) -> object:
        """Return what tells this world from others in which something else may happen next."""
        tokens = sorted(
            {run.token for holder in self.holders.values() for run in holder.runs.values()}
        )
        return (
            self.read(lambda tx: _describe(tx, self, tokens)),
            tuple(
                (each.is_alive, frozenset(each.recorded), frozenset(_runs(each, tokens)))
                for each in self.holders.values()
            ),
            tuple(sorted(self.verdicts.items())),
            tuple(self.arrivals),
            frozenset(self.withdrawn),
            tuple(self.answers),
            (self.crashes, self.expiries),
        )

    def read(self, step: Callable[[Transaction], T]) -> T:
        """Return what a step reads."""
        return finished(self.state.run_read(step))

    def stored(self, thread: str) -> list[str]:
        """Return the ids of the messages of a thread in the order of their numbers."""
        return self.read(lambda tx: [row.message_id for row in _rows(tx, thread, self.now)])

    @property
    def now(self) -> int:
        """The time in microseconds."""
        return to_epoch_us(self.clock.now())

    def _of_message(self, plan: Planned) -> Iterator[Action]:
        if plan.name not in self.verdicts:
            yield ("send", plan.name)
        elif self.verdicts[plan.name] == "accepted" and not self._is_settled(plan.name):
            yield ("look", plan.name)
            if self.scene.withdraws:
                yield ("withdraw", plan.name)

    def _is_settled(self, name: str) -> bool:
        answered = any(name in group for group in self.answers)
        runs = [run for holder in self.holders.values() for run in holder.runs.values()]
        is_running = any(name in _names(run) for run in runs)
        return answered or is_running or name in self.withdrawn

    def _send(self, name: str) -> None:
        plan = self.plans[name]
        entry = NewEntry(
            ticket_id=name,
            lock_key=LOCK,
            conversation=_key(plan.thread),
            wanted_id=None,
            claim_id=plan.claim,
            payload=f'"{name}"',
            owner=plan.sender,
        )
        admission = finished(
            self.state.turns.admit(
                entry, policy=self.scene.policy, lease=LEASE, dedupe_ttl=timedelta(hours=1)
            )
        )
        self.verdicts[name] = admission.verdict
        if admission.verdict == "accepted":
            self.arrivals.append(name)
        for pushed_out in admission.pushed_out:
            self._leave(pushed_out)
        self._start(admission.grant, by=plan.sender)

    def _look(self, name: str) -> None:
        sender = self.plans[name].sender
        outcome = finished(self.state.turns.outcome(name))
        if outcome.is_stalled:
            grant = finished(self.state.turns.take(LOCK, owner=sender, lease=LEASE))
            self._start(grant, by=sender)
        elif outcome.grant is not None and outcome.run_ticket_id == name:
            self._start(outcome.grant, by=sender)

    def _withdraw(self, name: str) -> None:
        sender = self.plans[name].sender
        left = finished(self.state.turns.withdraw(name, owner=sender, lease=LEASE))
        if left.withdrawn:
            self._leave(name)
            self.holders[sender].drop(name)
        self._start(left.next, by=sender)

    def _leave(self, name: str) -> None:
        self.withdrawn.add(name)
        self.arrivals.remove(name)

    def _record(self, holder: str, ticket_id: str) -> None:
        run = self.holders[holder].runs[ticket_id]
        names = _names(run)
        thread = self.plans[names[-1]].thread
        if {self.plans[name].thread for name in names} != {thread}:
            raise BrokenRuleError("a run has messages of one thread", names)
        rows = [NewRow(message=_message(name, "user")) for name in names]
        session = SessionRequest(conversation=_key(thread))
        may_write = self._may_write(run)
        try:
            finished(
                self.state.turns.record(ticket_id, rows=rows, session=session, ctx=_under(run))
            )
        except StateConflictError:
            self.holders[holder].drop(ticket_id)
            return
        if not may_write:
            raise BrokenRuleError("only who holds the lock writes", holder, names)
        self.holders[holder].recorded.add(ticket_id)
        self._check_order(thread)

    def _answer(self, holder: str, ticket_id: str) -> None:
        run = self.holders[holder].runs[ticket_id]
        answer = NewRow(message=_message(f"{ticket_id} answer", "assistant"))
        may_write = self._may_write(run)
        try:
            done = finished(
                self.state.turns.finish(
                    ticket_id,
                    answer=answer,
                    end=TurnEnd(status="complete"),
                    owner=holder,
                    lease=LEASE,
                    ctx=_under(run),
                )
            )
        except StateConflictError:
            self.holders[holder].drop(ticket_id)
            return
        if not may_write:
            raise BrokenRuleError("only who holds the lock writes", holder, _names(run))
        self.holders[holder].drop(ticket_id)
        self.answers.append(_names(run))
        self._check_answers()
        self._start(done.next, by=holder)

    def _renew(self, holder: str, ticket_id: str) -> None:
        run = self.holders[holder].runs[ticket_id]
        may_write = self._may_write(run)
        is_held = finished(self.state.turns.renew(ticket_id, lease=LEASE, ctx=_under(run)))
        if is_held != may_write:
            raise BrokenRuleError("a lease is renewed exactly while it is held", holder, is_held)
        if not is_held:
            self.holders[holder].drop(ticket_id)

    def _crash(self, holder: str) -> None:
        self.holders[holder] = Holder(is_alive=False)
        self.crashes += 1

    def _expire(self) -> None:
        self.clock.advance(seconds=LEASE.total_seconds())
        self.expiries += 1

    def _start(self, grant: Grant | None, by: str = RESCUER) -> None:
        """Let a holder carry out what was granted to it; another one has to look for it."""
        if grant is None:
            return
        owner = self.holders.get(grant.owner)
        if owner is not None and owner.is_alive and grant.owner == by:
            owner.runs[grant.ticket_id] = grant

    def _live_lock(self) -> LockRecord | None:
        lock = self.read(lambda tx: tx.locks.get(LOCK))
        return lock if lock is not None and lock.until > self.now else None

    def _may_write(self, run: Grant) -> bool:
        lock = self._live_lock()
        return lock is not None and lock.token == run.token

    def _check_lock(self) -> None:
        waiting = [name for name in self.arrivals if self._state_of(name) == "waiting"]
        if waiting and self.read(lambda tx: tx.locks.get(LOCK)) is None:
            raise BrokenRuleError("a lock is released only when nothing waits", waiting)

    def _state_of(self, name: str) -> str | None:
        entry = self.read(lambda tx: tx.entries.get(name))
        return None if entry is None else entry.state

    def _check_order(self, thread: str) -> None:
        stored = [name for name in self.stored(thread) if name in self.plans]
        if len(stored) != len(set(stored)):
            raise BrokenRuleError("a message is stored once", stored)
        if stored != sorted(stored, key=self.arrivals.index):
            raise BrokenRuleError("messages of a thread are stored in order of arrival", stored)

    def _check_answers(self) -> None:
        names = [name for group in self.answers for name in group]
        if len(names) != len(set(names)):
            raise BrokenRuleError("a message is answered once", self.answers)
        claims = [claim for name in names if (claim := self.plans[name].claim) is not None]
        if len(claims) != len(set(claims)):
            raise BrokenRuleError("a message that is sent again is answered once", self.answers)
        oldest = [min(map(self.arrivals.index, group)) for group in self.answers]
        if not self.crashes and not self.expiries and oldest != sorted(oldest):
            raise BrokenRuleError("runs go in order of arrival", self.answers)

    def _check_end(self) -> None:
        answered = {name for group in self.answers for name in group}
        for name in self.arrivals:
            is_lost = name in self.stored(self.plans[name].thread)
            if name not in answered and not is_lost:
                raise BrokenRuleError("every accepted message is answered", name)
        if self.read(lambda tx: tx.locks.get(LOCK)) is not None:
            raise BrokenRuleError("a lock that nobody needs is gone")


def _key(thread: str) -> ConversationKey:
    return ConversationKey(None, "agent", "channel", thread)


def _message(message_id: str, role: Any) -> Message:
    return Message(message_id, role, ({"type": "text", "text": "hi"},))


def _names(run: Grant) -> tuple[str, ...]:
    return tuple(each.ticket_id for each in run.entries)


def _under(run: Grant) -> StateContext:
    return StateContext(fence=Fence(run.lock_key, run.token))


def _rows(tx: Transaction, thread: str, now: int) -> Sequence[RowRecord]:
    conversation = tx.conversations.get(_key(thread).encode())
    if conversation is None:
        return ()
    return tx.rows.select(RowQuery(conversation_key=conversation.key, limit=100, now=now))


def _runs(holder: Holder, tokens: list[int]) -> Iterator[tuple[str, int]]:
    return ((ticket_id, tokens.index(run.token)) for ticket_id, run in holder.runs.items())


def _describe(tx: Transaction, world: World, tokens: list[int]) -> object:
    now = world.now
    lock = tx.locks.get(LOCK)
    held = None
    if lock is not None:
        rank = tokens.index(lock.token) if lock.token in tokens else -1
        held = (rank, lock.ticket_id, lock.owner, max(0, lock.until - now))
    entries = [tx.entries.get(name) for name in world.plans]
    threads = sorted({each.thread for each in world.plans.values()})
    return (
        held,
        tuple(
            entry
            and (
                entry.state,
                entry.run_ticket_id,
                entry.claim_key,
                max(0, entry.attended_until - now),
            )
            for entry in entries
        ),
        tuple(tuple(row.message_id for row in _rows(tx, each, now)) for each in threads),
    )
