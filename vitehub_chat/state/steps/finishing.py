"""Finishing: the end of a run, its withdrawal, and what can be known of it."""

from __future__ import annotations

from datetime import timedelta

import attrs

from vitehub_chat.errors import StateError
from vitehub_chat.model.messages import Message
from vitehub_chat.model.plans import TurnPlan
from vitehub_chat.state.codec import decode_end, decode_row, encode_end
from vitehub_chat.state.records import EntryRecord, RowRecord
from vitehub_chat.state.row_requests import Pruned, PruneRequest
from vitehub_chat.state.steps.granting import (
    MIN_KEEP,
    grant_next,
    grant_of,
    is_expired,
    live_lock,
    pass_on,
    settling_until,
)
from vitehub_chat.state.steps.planning import store_plan
from vitehub_chat.state.steps.pruning import prune_gently
from vitehub_chat.state.steps.recording import Writing, write_answer
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import Finished, NewRow, Outcome, TurnEnd, Withdrawal

_OVER = frozenset({"ended", "lost"})


def write_progress(tx: Transaction, ticket_id: str, answer: NewRow, writing: Writing) -> RowRecord:
    """Carry out `TurnStore.progress`."""
    return write_answer(tx, _entry(tx, ticket_id), answer, writing)


def finish(
    tx: Transaction,
    ticket_id: str,
    answer: NewRow | None,
    end: TurnEnd,
    owner: str,
    lease: int,
    writing: Writing,
    plan: TurnPlan | None = None,
    prune: PruneRequest | None = None,
) -> Finished:
    """Carry out `TurnStore.finish`."""
    lead, now = _entry(tx, ticket_id), writing.now
    record = None
    if answer is not None and lead.session_key is not None:
        record = write_answer(tx, lead, answer, writing)
    if plan is not None and lead.session_key is not None:
        store_plan(tx, lead.session_key, plan, writing)
    pruned = None if prune is None else _prune(tx, lead, prune, writing)
    text = encode_end(end, with_message=record is None)
    for entry in tx.entries.of_run(ticket_id):
        tx.entries.update(
            attrs.evolve(
                entry,
                state="ended",
                payload=None,
                keep_until=max(entry.claim_until, now + MIN_KEEP),
                end=text,
            )
        )
    return Finished(
        row=None if record is None else decode_row(record),
        next=pass_on(tx, lead.lock_key, owner, lease, now),
        pruned=pruned,
    )


def _prune(
    tx: Transaction, lead: EntryRecord, prune: PruneRequest, writing: Writing
) -> Pruned | None:
    session = None if lead.session_key is None else tx.sessions.get(lead.session_key)
    if session is None:
        return None
    return prune_gently(tx, session.conversation, prune, writing.retention, writing.now)


def outcome(tx: Transaction, ticket_id: str, now: int) -> Outcome:
    """Carry out `TurnStore.outcome`."""
    entry = tx.entries.get(ticket_id)
    if entry is None or (entry.state in _OVER and entry.keep_until <= now):
        return Outcome(state="unknown")
    if entry.end is not None:
        end, message_id = decode_end(entry.end)
        if message_id is not None:
            end = attrs.evolve(end, message=_answer_of(tx, entry, message_id, now))
        return Outcome(state="ended", end=end, run_ticket_id=entry.run_ticket_id)
    if entry.state == "lost":
        return Outcome(state="lost", run_ticket_id=entry.run_ticket_id)
    lock = live_lock(tx, entry.lock_key, now)
    if entry.state == "waiting":
        if is_expired(entry, now):
            end = TurnEnd(status="dropped", reason="expired")
            return Outcome(state="ended", end=end)
        return _waiting(tx, entry, now) if lock is None else Outcome(state="waiting")
    if lock is None or lock.ticket_id != entry.run_ticket_id:
        if entry.state == "running":
            return Outcome(state="waiting", is_stalled=True)
        return Outcome(state="lost", run_ticket_id=entry.run_ticket_id)
    return Outcome(
        state="running",
        grant=grant_of(lock, list(tx.entries.of_run(lock.ticket_id))),
        run_ticket_id=entry.run_ticket_id,
    )


def _waiting(tx: Transaction, entry: EntryRecord, now: int) -> Outcome:
    """Tell whether an entry whose lock is free only waits for somebody to take it."""
    head = tx.entries.first_waiting(entry.lock_key) or entry
    until = settling_until(tx, head)
    if until <= now:
        return Outcome(state="waiting", is_stalled=True)
    return Outcome(state="waiting", settles_in=timedelta(microseconds=until - now))


def renew(tx: Transaction, ticket_id: str, token: int | None, lease: int, now: int) -> bool:
    """Carry out `TurnStore.renew`; the token is that of the run's lock, None while it waits."""
    entry = tx.entries.get(ticket_id)
    if entry is None:
        return False
    if token is None:
        if entry.state != "waiting":
            return False
        tx.entries.update(attrs.evolve(entry, attended_until=now + lease))
        return True
    lock = live_lock(tx, entry.lock_key, now)
    if lock is None or lock.token != token:
        return False
    tx.locks.put(attrs.evolve(lock, until=now + lease))
    return True


def withdraw(tx: Transaction, ticket_id: str, owner: str, lease: int, now: int) -> Withdrawal:
    """Carry out `TurnStore.withdraw`."""
    entry = tx.entries.get(ticket_id)
    if entry is None or entry.state not in {"waiting", "running"}:
        return Withdrawal(withdrawn=False)
    if entry.state == "running":
        lock = tx.locks.get(entry.lock_key)
        if entry.run_ticket_id != ticket_id or lock is None or lock.ticket_id != ticket_id:
            return Withdrawal(withdrawn=False)
        for other in tx.entries.of_run(ticket_id):
            tx.entries.update(attrs.evolve(other, state="waiting", run_ticket_id=None))
        tx.locks.delete(entry.lock_key)
    tx.entries.delete(ticket_id)
    following = grant_next(tx, entry.lock_key, owner, lease, now)
    return Withdrawal(withdrawn=True, next=following)


def _entry(tx: Transaction, ticket_id: str) -> EntryRecord:
    entry = tx.entries.get(ticket_id)
    if entry is None:
        raise StateError("the entry of this turn is gone", hint="was its conversation deleted?")
    return entry


def _answer_of(tx: Transaction, entry: EntryRecord, message_id: str, now: int) -> Message | None:
    session = None if entry.session_key is None else tx.sessions.get(entry.session_key)
    if session is None:
        return None
    record = tx.rows.by_message(session.conversation_key, message_id, now)
    return None if record is None else decode_row(record).message
