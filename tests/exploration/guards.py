"""Guards: what keeps the rules, and how it looks when one of them is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from tests.exploration import rules
from vitehub_chat.errors import StateConflictError
from vitehub_chat.state.memory.entries import MemoryEntries
from vitehub_chat.state.records import EntryRecord
from vitehub_chat.state.steps import admission, finishing, granting, resolving
from vitehub_chat.state.stores import store
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import NewEntry


@attrs.frozen
class Guard:
    """A guard, how to remove it, and the rule that is broken then in a scene."""

    name: str
    rule: str
    scene: str
    remove: Callable[[pytest.MonkeyPatch], None]


def _without_release_check(patch: pytest.MonkeyPatch) -> None:
    def release(tx: Transaction, lock_key: str, *_: Any) -> None:
        tx.locks.delete(lock_key)

    patch.setattr(finishing, "pass_on", release)


def _without_fencing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(store, "check_fence", lambda *_: None)


def _without_token_comparison(patch: pytest.MonkeyPatch) -> None:
    """Let any holder of a live lock write, whatever its token."""

    def check(tx: Transaction, fence: Any, now: int) -> None:
        if fence is not None and granting.live_lock(tx, fence.lock_key, now) is None:
            raise StateConflictError(code="lock_lost")

    patch.setattr(store, "check_fence", check)


def _without_end_of_lease(patch: pytest.MonkeyPatch) -> None:
    """Let the last holder write though its lease is over."""

    def check(tx: Transaction, fence: Any, _now: int) -> None:
        lock = None if fence is None else tx.locks.get(fence.lock_key)
        if fence is not None and (lock is None or lock.token != fence.token):
            raise StateConflictError(code="lock_lost")

    patch.setattr(store, "check_fence", check)


def _without_claims(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryEntries, "by_claim", lambda *_: None)


def _without_lock_check(patch: pytest.MonkeyPatch) -> None:
    """Let every message find its lock free."""
    patch.setattr(admission, "_is_free", lambda *_: True)


def _without_looking_at_the_queue(patch: pytest.MonkeyPatch) -> None:
    """Let a message that finds the lock free overtake those that wait."""
    patch.setattr(MemoryEntries, "count_waiting", lambda *_: 0)


def _without_taking_back(patch: pytest.MonkeyPatch) -> None:
    """Leave what a dead holder had not recorded where it is."""

    def forget(tx: Transaction, lock_key: str) -> None:
        tx.locks.delete(lock_key)

    patch.setattr(granting, "reclaim", forget)
    patch.setattr(admission, "reclaim", forget)


def _without_groups(patch: pytest.MonkeyPatch) -> None:
    """Let whatever waits for a lock share a run."""

    def all_of(entries: MemoryEntries, lock_key: str, _lane: str) -> Any:
        return entries._entries.all(entries._waiting.keys(lock_key))

    patch.setattr(MemoryEntries, "waiting_in_lane", all_of)


def _without_passing_on_after_withdrawal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(finishing, "grant_next", lambda *_: None)


def _without_places_of_the_dead(patch: pytest.MonkeyPatch) -> None:
    """Let what a dead holder had not recorded wait behind all others."""

    def put_behind(tx: Transaction, lock_key: str) -> None:
        lock = tx.locks.get(lock_key)
        kept_back(tx, lock_key)
        for entry in () if lock is None else _waiting_of(tx, lock_key, lock.ticket_id):
            tx.entries.delete(entry.ticket_id)
            tx.entries.insert(entry)

    kept_back = granting.reclaim
    patch.setattr(granting, "reclaim", put_behind)
    patch.setattr(admission, "reclaim", put_behind)


def _waiting_of(tx: Transaction, lock_key: str, ticket_id: str) -> list[EntryRecord]:
    entry = tx.entries.get(ticket_id)
    is_waiting = entry is not None and entry.state == "waiting" and entry.lock_key == lock_key
    return [entry] if entry is not None and is_waiting else []


def _without_the_end_of_a_group(patch: pytest.MonkeyPatch) -> None:
    """Let a message that begins a session join those before it."""

    def joined(tx: Transaction, head: EntryRecord, _now: int) -> list[EntryRecord]:
        return list(tx.entries.waiting_in_lane(head.lock_key, head.lane))

    patch.setattr(granting, "_group_of", joined)


def _without_the_wanted_session(patch: pytest.MonkeyPatch) -> None:
    """Let every message want the session of its thread."""
    plain = admission._entry_of

    def unwanted(new: NewEntry, terms: admission.Terms) -> EntryRecord:
        return plain(attrs.evolve(new, wanted_id=None), terms)

    patch.setattr(admission, "_entry_of", unwanted)


def _without_the_own_session(patch: pytest.MonkeyPatch) -> None:
    """Let every turn go on with the session that is there."""
    patch.setattr(resolving, "_is_over", lambda *_: False)


def _without_the_end_of_renewal(patch: pytest.MonkeyPatch) -> None:
    """Let a lease that is over be renewed while nobody else has taken the lock."""
    patch.setattr(finishing, "live_lock", lambda tx, lock_key, _now: tx.locks.get(lock_key))


def _without_the_token_of_renewal(patch: pytest.MonkeyPatch) -> None:
    """Let any holder renew the lease of whoever has the lock."""

    def renew(tx: Transaction, ticket_id: str, _: Any, lease: int, now: int) -> bool:
        entry = tx.entries.get(ticket_id)
        lock = None if entry is None else granting.live_lock(tx, entry.lock_key, now)
        if lock is not None:
            tx.locks.put(attrs.evolve(lock, until=now + lease))
        return lock is not None

    patch.setattr(finishing, "renew", renew)


def _without_longer_leases(patch: pytest.MonkeyPatch) -> None:
    """Let a renewal say that the lease goes on, and leave it as it is."""

    def renew(tx: Transaction, ticket_id: str, token: Any, _: int, now: int) -> bool:
        entry = tx.entries.get(ticket_id)
        lock = None if entry is None else granting.live_lock(tx, entry.lock_key, now)
        return lock is not None and lock.token == token

    patch.setattr(finishing, "renew", renew)


GUARDS = (
    Guard("release_check", rules.LEFT, "serial", _without_release_check),
    Guard("fencing", rules.WRITER, "serial", _without_fencing),
    Guard("fencing_token", rules.WRITER, "serial", _without_token_comparison),
    Guard("lease_end", rules.WRITER, "serial", _without_end_of_lease),
    Guard("claim_inside_admit", rules.CLAIM, "serial_sent_again", _without_claims),
    Guard("lock_check", rules.TAKEN, "serial", _without_lock_check),
    Guard("queue_check", rules.ARRIVAL, "serial", _without_looking_at_the_queue),
    Guard("taking_back", rules.ACCEPTED, "serial", _without_taking_back),
    Guard("place_in_line", rules.ARRIVAL, "serial", _without_places_of_the_dead),
    Guard("lanes", rules.LANE, "queue_of_two_threads", _without_groups),
    Guard("lanes_of_sessions", rules.LANE, "queue_of_two_sessions", _without_the_wanted_session),
    Guard("end_of_group", rules.BEGINNING, "queue_with_a_new_session", _without_the_end_of_a_group),
    Guard("new_session", rules.SESSION, "queue_with_a_new_session", _without_the_own_session),
    Guard("passing_on", rules.LEFT, "withdrawn", _without_passing_on_after_withdrawal),
    Guard("renewal_in_time", rules.RENEWAL, "serial_renewed", _without_the_end_of_renewal),
    Guard("renewal_token", rules.RENEWAL, "serial_renewed", _without_the_token_of_renewal),
    Guard("renewal", rules.RENEWAL, "serial_renewed", _without_longer_leases),
)
