"""Guards: what keeps the rules, and how it looks when one of them is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from vitehub_chat.errors import StateConflictError
from vitehub_chat.state.memory.entries import MemoryEntries
from vitehub_chat.state.steps import admission, finishing, granting
from vitehub_chat.state.stores import store
from vitehub_chat.state.tables import Transaction


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


GUARDS = (
    Guard(
        "release_check",
        "a lock is released only when nothing waits",
        "serial",
        _without_release_check,
    ),
    Guard("fencing", "only who holds the lock writes", "serial", _without_fencing),
    Guard("fencing_token", "only who holds the lock writes", "serial", _without_token_comparison),
    Guard("lease_end", "only who holds the lock writes", "serial", _without_end_of_lease),
    Guard(
        "claim_inside_admit",
        "a message that is sent again is answered once",
        "serial_sent_again",
        _without_claims,
    ),
    Guard(
        "lock_check", "a lease that is not over is not taken away", "serial", _without_lock_check
    ),
    Guard(
        "queue_check",
        "messages of a thread are stored in order of arrival",
        "serial",
        _without_looking_at_the_queue,
    ),
    Guard("taking_back", "every accepted message is answered", "serial", _without_taking_back),
    Guard("lanes", "a run has messages of one thread", "queue_of_two_threads", _without_groups),
    Guard(
        "passing_on",
        "a lock is released only when nothing waits",
        "withdrawn",
        _without_passing_on_after_withdrawal,
    ),
)
