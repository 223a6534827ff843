"""Admission: accepting a message, refusing it, or recognising it as a repeat."""

from __future__ import annotations

from typing import Literal

import attrs

from vitehub_chat.model.clock import in_us
from vitehub_chat.model.keys import encode_key
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.state.records import EntryRecord, LockRecord
from vitehub_chat.state.steps.granting import (
    MIN_KEEP,
    as_running,
    end_unrun,
    grant,
    grant_next,
    is_expired,
    live_lock,
    reclaim,
)
from vitehub_chat.state.steps.making_room import check_replaceable
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import Admission, NewEntry

PURGED_PER_ADMISSION = 8
ATTENDANCE = 10_000_000
"""How long a caller counts as waiting without a sign of life, in microseconds."""


@attrs.frozen(kw_only=True)
class Terms:
    """The terms of one admission; durations and times in microseconds."""

    policy: ConcurrencyPolicy
    lease: int
    dedupe_ttl: int
    now: int


def admit(tx: Transaction, new: NewEntry, terms: Terms) -> Admission:
    """Carry out `TurnStore.admit`."""
    tx.entries.purge(terms.now, PURGED_PER_ADMISSION)
    if new.replaces is not None:
        check_replaceable(tx, new, terms.now)
    entry = _entry_of(new, terms)
    if entry.claim_key is not None:
        first = tx.entries.by_claim(entry.claim_key)
        if first is not None and first.state == "ended" and new.replaces is not None:
            tx.entries.update(attrs.evolve(first, claim_key=None))
        elif first is not None and _is_repeat(tx, first, terms.now):
            granted = None
            if first.state != "ended":
                granted = grant_next(tx, first.lock_key, new.owner or "", terms.lease, terms.now)
            return Admission(verdict="repeat", ticket_id=first.ticket_id, grant=granted)
    return _accept(tx, entry, terms)


def _is_repeat(tx: Transaction, first: EntryRecord, now: int) -> bool:
    """Tell whether the holder of a claim stands for a new message; release its claim if not."""
    if first.state == "ended":
        stands = first.claim_until > now
    elif first.state == "waiting":
        stands = not is_expired(first, now)
    elif first.state == "lost":
        stands = False
    else:
        # A dead holder that had not recorded it leaves it in the queue; a recorded one is lost.
        stands = first.state == "running" or live_lock(tx, first.lock_key, now) is not None
    if not stands and first.state == "waiting":
        end_unrun(tx, first, "expired", now)
    elif not stands:
        if first.state == "recorded":
            reclaim(tx, first.lock_key)
            first = tx.entries.get(first.ticket_id) or first
        tx.entries.update(attrs.evolve(first, claim_key=None))
    return stands


def _accept(tx: Transaction, entry: EntryRecord, terms: Terms) -> Admission:
    policy, now, owner = terms.policy, terms.now, entry.owner or ""
    lock = tx.locks.get(entry.lock_key)
    is_free = _is_free(lock, now)
    if lock is not None and is_free:
        reclaim(tx, entry.lock_key)
    waiting = tx.entries.count_waiting(entry.lock_key, now)
    if is_free and not waiting and policy.strategy != "debounce":
        # Most messages find their lock free: written as running at once, not as waiting first.
        inserted = tx.entries.insert(as_running(entry, entry.ticket_id))
        granted = grant(tx, [inserted], owner, terms.lease, now)
        return Admission(verdict="accepted", ticket_id=entry.ticket_id, grant=granted)
    if not policy.waits:
        head = grant_next(tx, entry.lock_key, owner, terms.lease, now)
        verdict: Literal["dropped", "busy"] = "dropped" if policy.strategy == "drop" else "busy"
        return Admission(verdict=verdict, ticket_id=entry.ticket_id, reason="busy", grant=head)
    pushed_out: tuple[str, ...] = ()
    if policy.max_queue_size is not None and waiting >= policy.max_queue_size:
        if policy.on_queue_full != "drop-oldest":
            head = grant_next(tx, entry.lock_key, owner, terms.lease, now)
            return Admission(
                verdict="dropped" if policy.on_queue_full == "drop-newest" else "busy",
                ticket_id=entry.ticket_id,
                reason="queue_full",
                grant=head,
            )
        pushed_out = _push_out(tx, entry.lock_key, waiting - policy.max_queue_size + 1, now)
    if policy.max_queue_size is not None and waiting + 1 >= policy.max_queue_size:
        # A line that is full waits for nothing more.
        entry = attrs.evolve(entry, settles_at=entry.settles_at and now)
    tx.entries.insert(entry)
    return Admission(
        verdict="accepted",
        ticket_id=entry.ticket_id,
        grant=grant_next(tx, entry.lock_key, owner, terms.lease, now),
        pushed_out=pushed_out,
    )


def _is_free(lock: LockRecord | None, now: int) -> bool:
    """Tell whether nobody holds a lock, or its lease is over."""
    return lock is None or lock.until <= now


def _push_out(tx: Transaction, lock_key: str, count: int, now: int) -> tuple[str, ...]:
    """Drop the entries that wait longest, not counting those that expired anyway."""
    gone: list[str] = []
    while len(gone) < count and (head := tx.entries.first_waiting(lock_key)) is not None:
        if is_expired(head, now):
            end_unrun(tx, head, "expired", now)
        else:
            end_unrun(tx, head, "queue_full", now)
            gone.append(head.ticket_id)
    return tuple(gone)


def _entry_of(new: NewEntry, terms: Terms) -> EntryRecord:
    conversation, now = new.conversation.encode(), terms.now
    ttl = terms.policy.queue_entry_ttl
    claim_until = now + terms.dedupe_ttl
    return EntryRecord(
        ticket_id=new.ticket_id,
        lock_key=new.lock_key,
        conversation=conversation,
        lane=encode_key(conversation, new.wanted_id),
        claim_id=new.claim_id,
        claim_key=None if new.claim_id is None else encode_key(conversation, new.claim_id),
        payload=new.payload,
        starts_session=new.starts_session,
        coalesces=terms.policy.coalesces and new.replaces is None and not new.runs_alone,
        state="waiting",
        owner=new.owner,
        attended_until=now + min(terms.lease, ATTENDANCE) if new.owner is not None else 0,
        expires_at=None if ttl is None else now + in_us(ttl),
        claim_until=claim_until,
        keep_until=max(claim_until, now + MIN_KEEP),
        settles_at=_settles_at(terms),
    )


def _settles_at(terms: Terms) -> int | None:
    """Return how long a message waits for more of them, which is less than it may wait at all."""
    policy = terms.policy
    if policy.strategy != "debounce":
        return None
    wait = in_us(policy.debounce)
    if policy.queue_entry_ttl is not None:
        wait = min(wait, in_us(policy.queue_entry_ttl) * 7 // 8)
    return terms.now + wait
