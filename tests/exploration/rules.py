"""The rules that no order of actions may break, checked from outside of the steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tests.exploration.plans import LEASE, LOCK, BrokenRuleError, names_of
from vitehub_chat.model.clock import in_us
from vitehub_chat.state.records import LockRecord, RowRecord
from vitehub_chat.state.values import Grant, SessionRef

if TYPE_CHECKING:
    from tests.exploration.world import World

ACCEPTED = "every accepted message is answered"
ARRIVAL = "runs go in order of arrival"
BEGINNING = "a message that begins a session begins a run"
CLAIM = "a message that is sent again is answered once"
GONE = "a lock that nobody needs is gone"
GROUP = "who waits together is run together"
LANE = "a run has messages of one thread and wanted session"
LEFT = "a lock is released only when nothing waits"
ONCE = "a message is answered once"
PLACE = "an answer is in the session of its message"
RENEWAL = "a lease is renewed exactly while it is held"
SESSION = "a run continues the newest session, unless it begins one"
STORED_ONCE = "a message is stored once"
STORED_ORDER = "messages of a run's lane are stored in order of arrival"
TAKEN = "a lease that is not over is not taken away"
WRITER = "only who holds the lock writes"


def check_lock(world: World, before: LockRecord | None, *, may_pass_on: bool) -> None:
    """Check the lock after an action, of which was held before."""
    after = world.lock()
    waiting = [name for name in world.past.arrivals if world.state_of(name) == "waiting"]
    if waiting and after is None:
        raise BrokenRuleError(LEFT, waiting)
    if after is None or before is None or after.token != before.token:
        held = before is not None and before.until > world.now
        if held and not may_pass_on:
            raise BrokenRuleError(TAKEN, before, after)
        if after is not None:
            check_granted(world, after, waiting)


def check_granted(world: World, lock: LockRecord, waiting: Sequence[str]) -> None:
    """Check who was chosen among those that had been accepted and not run."""
    plans, arrivals = world.plans, world.past.arrivals
    group = [name for name in arrivals if world.run_of(name) == lock.ticket_id]
    oldest = min(group, key=arrivals.index)
    if any(arrivals.index(name) < arrivals.index(oldest) for name in waiting):
        raise BrokenRuleError(ARRIVAL, group, waiting)
    if {plans[name].lane for name in group} != {plans[oldest].lane}:
        raise BrokenRuleError(LANE, group)
    if any(plans[name].starts for name in group if name != oldest):
        raise BrokenRuleError(BEGINNING, group)
    if group != _wanted_group(world, oldest, [*waiting, *group]):
        raise BrokenRuleError(GROUP, group, waiting)


def check_may_write(run: Grant, *, was_held: bool) -> None:
    """Check that a write that was not refused came from the one who held the lock."""
    if not was_held:
        raise BrokenRuleError(WRITER, names_of(run))


def check_renewal(world: World, *, was_held: bool, is_held: bool) -> None:
    """Check the answer to a renewal, and that it is true."""
    lock = world.lock()
    lasts = lock is not None and lock.until == world.now + in_us(LEASE)
    if is_held != was_held or (is_held and not lasts):
        raise BrokenRuleError(RENEWAL, was_held, is_held, lock)


def check_recorded(world: World, names: Sequence[str], session: SessionRef | None) -> None:
    """Check the session of a recorded run, and the places of its messages."""
    _check_order(world, names)
    past, first = world.past, world.plans[names[0]]
    if world.scene.sessions is None:
        return
    assert session is not None
    base = first.wanted or first.thread
    is_other = session.session_id not in past.session_of.values()
    begins = first.starts or base not in past.newest
    if session.is_new != begins or (begins and not is_other):
        raise BrokenRuleError(SESSION, names, session)
    if not begins and session.session_id != past.newest[base]:
        raise BrokenRuleError(SESSION, names, session)
    past.newest[base] = session.session_id
    past.session_of.update(dict.fromkeys(names, session.session_id))


def check_answered(world: World, names: Sequence[str], answer_id: str) -> None:
    """Check the answers so far, the last of which is that of a run."""
    past = world.past
    answered = past.answered()
    if len(answered) != len(set(answered)):
        raise BrokenRuleError(ONCE, past.answers)
    claims = [claim for name in answered if (claim := world.plans[name].claim) is not None]
    if len(claims) != len(set(claims)):
        raise BrokenRuleError(CLAIM, past.answers)
    oldest = min(map(past.arrivals.index, names))
    overtaken = [name for name in past.arrivals[:oldest] if name not in answered]
    if lost := [name for name in overtaken if not world.is_stored(name)]:
        raise BrokenRuleError(ARRIVAL, past.answers, lost)
    row, question = world.row_of(answer_id), world.row_of(names[-1])
    if row is None or question is None or not _are_together(question, row):
        raise BrokenRuleError(PLACE, names, row)


def check_end(world: World) -> None:
    """Check that nothing is left or lost once all leases are over and the queue is drained."""
    answered = set(world.past.answered())
    for name in world.past.arrivals:
        if name not in answered and not world.is_stored(name):
            raise BrokenRuleError(ACCEPTED, name)
    if world.read(lambda tx: tx.locks.get(LOCK)) is not None:
        raise BrokenRuleError(GONE)


def _wanted_group(world: World, oldest: str, unrun: Iterable[str]) -> list[str]:
    """Return which of those that were not run yet should be run with the oldest of them."""
    if not world.scene.policy.coalesces:
        return [oldest]
    group: list[str] = []
    for name in sorted(unrun, key=world.past.arrivals.index):
        plan = world.plans[name]
        if plan.lane == world.plans[oldest].lane:
            if plan.starts and group:
                break
            group.append(name)
    return group


def _check_order(world: World, names: Sequence[str]) -> None:
    lane = world.plans[names[0]].lane
    stored = [name for name in world.stored() if name in world.plans]
    if len(stored) != len(set(stored)):
        raise BrokenRuleError(STORED_ONCE, stored)
    ours = [name for name in stored if world.plans[name].lane == lane]
    if ours != sorted(ours, key=world.past.arrivals.index):
        raise BrokenRuleError(STORED_ORDER, stored)


def _are_together(question: RowRecord, answer: RowRecord) -> bool:
    return (
        question.conversation_key == answer.conversation_key
        and question.session_key == answer.session_key
        and question.session_id == answer.session_id
        and question.seq < answer.seq
    )
