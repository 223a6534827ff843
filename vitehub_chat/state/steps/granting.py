"""Granting: who runs next under a lock, and who may write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from vitehub_chat.errors import StateConflictError
from vitehub_chat.model.clock import from_epoch_us
from vitehub_chat.state.codec import encode_end
from vitehub_chat.state.records import EntryRecord, LockRecord
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import Entry, Grant, TurnEnd

if TYPE_CHECKING:
    from vitehub_chat.state.contract import Fence

MIN_KEEP = 60_000_000
"""How long the end of an entry can be looked up at least, in microseconds."""
MOST_AHEAD = 1_000_000
"""How long before its oldest entry would expire a line settles, at most, in microseconds."""


def check_fence(tx: Transaction, fence: Fence | None, now: int) -> None:
    """Refuse to go on unless the lock of a fence is held under its token.

    Raises:
        StateConflictError: The lease is over or somebody else holds the lock (`lock_lost`).
    """
    if fence is None:
        return
    lock = tx.locks.get(fence.lock_key)
    if lock is None or lock.token != fence.token or lock.until <= now:
        raise StateConflictError("the lock of this turn was lost", code="lock_lost")


def live_lock(tx: Transaction, lock_key: str, now: int) -> LockRecord | None:
    """Return the lock of a key if it is held and its lease is not over."""
    lock = tx.locks.get(lock_key)
    return lock if lock is not None and lock.until > now else None


def grant_next(tx: Transaction, lock_key: str, owner: str, lease: int, now: int) -> Grant | None:
    """Give a free lock to the group that waits longest; None if it is held or nobody waits.

    The group runs where its newest entry is waited for, else at `owner`.
    """
    if live_lock(tx, lock_key, now) is not None:
        return None
    reclaim(tx, lock_key)
    return pass_on(tx, lock_key, owner, lease, now)


def pass_on(tx: Transaction, lock_key: str, owner: str, lease: int, now: int) -> Grant | None:
    """Give a lock that nobody needs any more to the group that waits longest, or delete it.

    It is deleted, too, while those who wait are still settling, and without an `owner` when nobody
    waits for the group: whoever comes next takes it.
    """
    head = _first_unexpired(tx, lock_key, now)
    if head is None or settling_until(tx, head) > now:
        tx.locks.delete(lock_key)
        return None
    group = _group_of(tx, head, now)
    if not owner and not is_attended(group[-1], now):
        tx.locks.delete(lock_key)
        return None
    return grant(tx, group, owner, lease, now)


def grant(tx: Transaction, group: list[EntryRecord], owner: str, lease: int, now: int) -> Grant:
    """Give the lock to a group, its newest entry being the one that is answered."""
    lead = group[-1]
    lock = LockRecord(
        lock_key=lead.lock_key,
        token=tx.locks.next_token(),
        ticket_id=lead.ticket_id,
        owner=lead.owner if lead.owner is not None and is_attended(lead, now) else owner,
        until=now + lease,
    )
    tx.locks.put(lock)
    for entry in group:
        running = as_running(entry, lead.ticket_id)
        if running != entry:
            tx.entries.update(running)
    return grant_of(lock, group)


def as_running(entry: EntryRecord, run_ticket_id: str) -> EntryRecord:
    """Return an entry as one of a run."""
    return attrs.evolve(entry, state="running", run_ticket_id=run_ticket_id)


def grant_of(lock: LockRecord, group: list[EntryRecord]) -> Grant:
    """Return the grant that a lock stands for."""
    return Grant(
        ticket_id=lock.ticket_id,
        owner=lock.owner,
        lock_key=lock.lock_key,
        token=lock.token,
        until=from_epoch_us(lock.until),
        entries=tuple(
            Entry(ticket_id=e.ticket_id, payload=e.payload or "", claim_id=e.claim_id)
            for e in group
        ),
    )


def reclaim(tx: Transaction, lock_key: str) -> None:
    """Take back what the dead holder of a lock left: unrecorded entries wait again, at their place.

    Recorded ones are lost: their messages are stored, the next turn sees them.
    """
    lock = tx.locks.get(lock_key)
    if lock is None:
        return
    for entry in tx.entries.of_run(lock.ticket_id):
        if entry.state == "running":
            tx.entries.update(attrs.evolve(entry, state="waiting", run_ticket_id=None))
        else:
            tx.entries.update(attrs.evolve(entry, state="lost"))
    tx.locks.delete(lock_key)


def settling_until(tx: Transaction, head: EntryRecord) -> int:
    """Return until when a line waits for more messages, from its first entry; 0 if it does not.

    That is until the newest entry has waited long enough, but a while before the oldest one would
    expire, so that it can still be run.
    """
    if head.settles_at is None:
        return 0
    newest = tx.entries.last_waiting(head.lock_key) or head
    if newest.settles_at is None:
        return 0
    if head.expires_at is None:
        return newest.settles_at
    ahead = min(MOST_AHEAD, max(head.expires_at - head.settles_at, 0) // 2)
    return min(newest.settles_at, head.expires_at - ahead)


def quarantine(
    tx: Transaction,
    ticket_ids: Sequence[str],
    fence: Fence,
    owner: str,
    lease: int,
    now: int,
) -> Grant | None:
    """Carry out `TurnStore.quarantine`."""
    lock = tx.locks.get(fence.lock_key)
    run = [] if lock is None else [entry.ticket_id for entry in tx.entries.of_run(lock.ticket_id)]
    reclaim(tx, fence.lock_key)
    for entry in map(tx.entries.get, ticket_ids):
        if entry is not None and entry.ticket_id in run and entry.state == "waiting":
            end_unrun(tx, entry, "unreadable", now)
    if lock is not None and not owner:
        _leave_to_others(tx, run, lock.owner)
    return pass_on(tx, fence.lock_key, owner, lease, now)


def _leave_to_others(tx: Transaction, run: Sequence[str], owner: str) -> None:
    """Let what a process gives back count as waited for by nobody, or it would get it again."""
    for entry in map(tx.entries.get, run):
        if entry is not None and entry.state == "waiting" and entry.owner == owner:
            tx.entries.update(attrs.evolve(entry, attended_until=0))


def end_unrun(tx: Transaction, entry: EntryRecord, reason: str, now: int) -> None:
    """End an entry that never ran; its claim is released, so it may be sent again.

    What cannot be read is kept for a look at it, as long as its end.
    """
    tx.entries.update(
        attrs.evolve(
            entry,
            state="ended",
            payload=entry.payload if reason == "unreadable" else None,
            claim_key=None,
            keep_until=max(entry.keep_until, now + MIN_KEEP),
            end=encode_end(TurnEnd(status="dropped", reason=reason), with_message=False),
        )
    )


def is_expired(entry: EntryRecord, now: int) -> bool:
    """Tell whether a waiting entry has waited too long."""
    return entry.expires_at is not None and entry.expires_at <= now


def is_attended(entry: EntryRecord, now: int) -> bool:
    """Tell whether a process is known to wait for an entry."""
    return entry.owner is not None and entry.attended_until > now


def _first_unexpired(tx: Transaction, lock_key: str, now: int) -> EntryRecord | None:
    while (head := tx.entries.first_waiting(lock_key)) is not None:
        if not is_expired(head, now):
            return head
        end_unrun(tx, head, "expired", now)
    return None


def _group_of(tx: Transaction, head: EntryRecord, now: int) -> list[EntryRecord]:
    if not head.coalesces:
        return [head]
    group = [head]
    for entry in tx.entries.waiting_in_lane(head.lock_key, head.lane):
        if entry.position <= head.position:
            continue
        if entry.starts_session or not entry.coalesces:
            break
        if is_expired(entry, now):
            end_unrun(tx, entry, "expired", now)
        else:
            group.append(entry)
    return group
