"""A world of holders and messages around one lock, whose every step is one action.

Holders do what processes do: they send messages, carry out the runs that are granted to them, look
after messages of theirs that wait, renew, stand still and die. Which one acts next is up to the
explorer. After every action the rules are checked that no order of actions may break.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import attrs

from tests.exploration import rules
from tests.exploration.plans import (
    LEASE,
    LOCK,
    RESCUER,
    Action,
    Holder,
    Past,
    Planned,
    Scene,
    names_of,
)
from tests.exploration.rewinding import rewindable_memory
from vitehub_chat.errors import StateConflictError
from vitehub_chat.model.clock import to_epoch_us
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.state.contract import Fence, StateContext
from vitehub_chat.state.records import LockRecord, RowRecord
from vitehub_chat.state.tables import RowQuery, Transaction
from vitehub_chat.state.values import Grant, NewEntry, NewRow, SessionRequest, TurnEnd
from vitehub_chat.testing.clock import FakeClock

T = TypeVar("T")


def finished(call: Coroutine[Any, Any, T]) -> T:
    """Return the answer of a call that never waits, as those of the memory provider."""
    try:
        call.send(None)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    raise AssertionError("a call of the memory provider waited")


@attrs.frozen
class Moment:
    """Where a world was."""

    length: int
    now: datetime
    past: Past


class World:
    """A store, holders, and what they did so far."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.clock = FakeClock()
        self.state, self._journal = rewindable_memory(self.clock)
        finished(self.state.__aenter__())
        self.plans = {each.name: each for each in scene.messages}
        self.past = Past(holders={name: Holder() for name in scene.holders})

    def moment(self) -> Moment:
        """Return where this world is."""
        return Moment(len(self._journal), self.clock.now(), self.past.copy())

    def go_back(self, moment: Moment) -> None:
        """Make undone what happened since a moment, which may be gone back to once more."""
        self._journal.rewind(moment.length)
        self.clock.advance(seconds=(moment.now - self.clock.now()).total_seconds())
        self.past = moment.past.copy()

    def actions(self) -> Iterator[Action]:
        """Yield what may happen next."""
        for plan in self.scene.messages:
            if self.past.holders[plan.sender].is_alive:
                yield from self._of_message(plan)
        for name, holder in self.past.holders.items():
            for ticket_id in holder.runs:
                yield ("answer" if ticket_id in holder.recorded else "record", name, ticket_id)
                if self.scene.renews:
                    yield ("renew", name, ticket_id)
            if holder.is_alive and self.past.crashes < self.scene.crashes:
                yield ("crash", name)
        if self.past.passes < self.scene.passes:
            yield ("wait",)

    def act(self, action: Action) -> None:
        """Let something happen.

        Raises:
            BrokenRuleError: It should not have been possible.
        """
        before = self.lock()
        getattr(self, f"_{action[0]}")(*action[1:])
        rules.check_lock(self, before, may_pass_on=action[0] not in {"send", "look"})

    def rescue(self) -> None:
        """Let all leases pass, drain the queue, and check that nothing is left or lost."""
        self.clock.advance(seconds=LEASE.total_seconds())
        for holder in self.past.holders.values():
            holder.runs.clear()
        self.past.holders[RESCUER] = Holder()
        grant = finished(self.state.turns.take(LOCK, owner=RESCUER, lease=LEASE))
        self._start(grant)
        while runs := self.past.holders[RESCUER].runs:
            ticket_id = next(iter(runs))
            self.act(("record", RESCUER, ticket_id))
            self.act(("answer", RESCUER, ticket_id))
        rules.check_end(self)

    def fingerprint(self) -> object:
        """Return what tells this world from others in which something else may happen next."""
        past = self.past
        holders = past.holders.values()
        tokens = sorted({run.token for holder in holders for run in holder.runs.values()})
        return (
            self.read(lambda tx: self._describe(tx, tokens)),
            tuple(
                (each.is_alive, frozenset(each.recorded), frozenset(_ranks(each, tokens)))
                for each in holders
            ),
            tuple(sorted(past.verdicts.items())),
            tuple(past.arrivals),
            frozenset(past.withdrawn),
            tuple(past.answers),
            frozenset(past.session_of.items()),
            (past.crashes, past.passes),
        )

    def read(self, step: Callable[[Transaction], T]) -> T:
        """Return what a step reads."""
        return finished(self.state.run_read(step))

    def lock(self) -> LockRecord | None:
        """Return the lock, also when its lease is over."""
        return self.read(lambda tx: tx.locks.get(LOCK))

    def state_of(self, name: str) -> str | None:
        """Return the state of a message's entry, None without one."""
        entry = self.read(lambda tx: tx.entries.get(name))
        return None if entry is None else entry.state

    def run_of(self, name: str) -> str | None:
        """Return which run a message is in and not recorded."""
        entry = self.read(lambda tx: tx.entries.get(name))
        return entry.run_ticket_id if entry is not None and entry.state == "running" else None

    def stored(self) -> list[str]:
        """Return the ids of the stored messages, thread by thread in the order of their numbers."""
        return self.read(lambda tx: [row.message_id for row in self._rows(tx)])

    def is_stored(self, name: str) -> bool:
        """Tell whether a message was recorded."""
        return name in self.stored()

    def row_of(self, message_id: str) -> RowRecord | None:
        """Return the row of a message."""
        rows = self.read(self._rows)
        return next((row for row in rows if row.message_id == message_id), None)

    @property
    def now(self) -> int:
        """The time in microseconds."""
        return to_epoch_us(self.clock.now())

    def _of_message(self, plan: Planned) -> Iterator[Action]:
        if plan.name not in self.past.verdicts:
            yield ("send", plan.name)
        elif self.past.verdicts[plan.name] == "accepted" and not self._is_settled(plan.name):
            yield ("look", plan.name)
            if self.scene.withdraws:
                yield ("withdraw", plan.name)

    def _is_settled(self, name: str) -> bool:
        runs = [run for holder in self.past.holders.values() for run in holder.runs.values()]
        is_running = any(name in names_of(run) for run in runs)
        return is_running or name in self.past.answered() or name in self.past.withdrawn

    def _send(self, name: str) -> None:
        plan = self.plans[name]
        entry = NewEntry(
            ticket_id=name,
            lock_key=LOCK,
            conversation=_key(plan.thread),
            wanted_id=plan.wanted,
            claim_id=plan.claim,
            payload=f'"{name}"',
            starts_session=plan.starts,
            owner=plan.sender,
        )
        admission = finished(
            self.state.turns.admit(
                entry, policy=self.scene.policy, lease=LEASE, dedupe_ttl=timedelta(hours=1)
            )
        )
        self.past.verdicts[name] = admission.verdict
        if admission.verdict == "accepted":
            self.past.arrivals.append(name)
        for pushed_out in admission.pushed_out:
            self.past.leave(pushed_out)
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
            self.past.leave(name)
            self.past.holders[sender].drop(name)
        self._start(left.next, by=sender)

    def _record(self, holder: str, ticket_id: str) -> None:
        run = self.past.holders[holder].runs[ticket_id]
        names = names_of(run)
        rows = [NewRow(message=_message(name, "user")) for name in names]
        was_held = self._holds(run)
        try:
            recorded = finished(
                self.state.turns.record(
                    ticket_id, rows=rows, session=self._request(names), ctx=_under(run)
                )
            )
        except StateConflictError:
            self.past.holders[holder].drop(ticket_id)
            return
        rules.check_may_write(run, was_held=was_held)
        self.past.holders[holder].recorded.add(ticket_id)
        rules.check_recorded(self, names, recorded.session)

    def _request(self, names: Sequence[str]) -> SessionRequest:
        first = self.plans[names[0]]
        return SessionRequest(
            conversation=_key(first.thread),
            policy=self.scene.sessions,
            base=first.wanted,
            starts_new=first.starts,
            begins_with=first.name,
        )

    def _answer(self, holder: str, ticket_id: str) -> None:
        run = self.past.holders[holder].runs[ticket_id]
        answer = NewRow(message=_message(f"{ticket_id} answer", "assistant"))
        was_held = self._holds(run)
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
            self.past.holders[holder].drop(ticket_id)
            return
        rules.check_may_write(run, was_held=was_held)
        self.past.holders[holder].drop(ticket_id)
        self.past.answers.append(names_of(run))
        rules.check_answered(self, names_of(run), f"{ticket_id} answer")
        self._start(done.next, by=holder)

    def _renew(self, holder: str, ticket_id: str) -> None:
        run = self.past.holders[holder].runs[ticket_id]
        was_held = self._holds(run)
        is_held = finished(self.state.turns.renew(ticket_id, lease=LEASE, ctx=_under(run)))
        rules.check_renewal(self, was_held=was_held, is_held=is_held)
        if not is_held:
            self.past.holders[holder].drop(ticket_id)

    def _crash(self, holder: str) -> None:
        self.past.holders[holder] = Holder(is_alive=False)
        self.past.crashes += 1

    def _wait(self) -> None:
        self.clock.advance(seconds=self.scene.by.total_seconds())
        self.past.passes += 1

    def _start(self, grant: Grant | None, by: str = RESCUER) -> None:
        """Let a holder carry out what was granted to it; another one has to look for it."""
        if grant is None:
            return
        owner = self.past.holders.get(grant.owner)
        if owner is not None and owner.is_alive and grant.owner == by:
            owner.runs[grant.ticket_id] = grant

    def _holds(self, run: Grant) -> bool:
        lock = self.lock()
        return lock is not None and lock.token == run.token and lock.until > self.now

    def _rows(self, tx: Transaction) -> Sequence[RowRecord]:
        rows: list[RowRecord] = []
        for thread in sorted({each.thread for each in self.plans.values()}):
            conversation = tx.conversations.get(_key(thread).encode())
            if conversation is not None:
                query = RowQuery(conversation_key=conversation.key, limit=100, now=self.now)
                rows += tx.rows.select(query)
        return rows

    def _describe(self, tx: Transaction, tokens: list[int]) -> object:
        now, lock = self.now, tx.locks.get(LOCK)
        held = None
        if lock is not None:
            rank = tokens.index(lock.token) if lock.token in tokens else -1
            held = (rank, lock.ticket_id, lock.owner, max(0, lock.until - now))
        entries = [tx.entries.get(name) for name in self.plans]
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
            tuple(row.message_id for row in self._rows(tx)),
        )


def _key(thread: str) -> ConversationKey:
    return ConversationKey(None, "agent", "channel", thread)


def _message(message_id: str, role: Any) -> Message:
    return Message(message_id, role, ({"type": "text", "text": "hi"},))


def _under(run: Grant) -> StateContext:
    return StateContext(fence=Fence(run.lock_key, run.token))


def _ranks(holder: Holder, tokens: list[int]) -> Iterator[tuple[str, int]]:
    return ((ticket_id, tokens.index(run.token)) for ticket_id, run in holder.runs.items())
