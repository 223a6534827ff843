"""Mutants whose steps are wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from tests.providers.mutants.mutant import Mutant
from vitehub_chat.errors import StateConflictError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import Fence
from vitehub_chat.state.memory.store import MemoryTables
from vitehub_chat.state.records import EntryRecord, LockRecord, RowRecord
from vitehub_chat.state.steps import (
    admission,
    clearing,
    finishing,
    granting,
    reading,
    running,
    sweeping,
    visible,
)
from vitehub_chat.state.stores import store
from vitehub_chat.state.stores.turns import Turns
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import Finished, NewEntry, WindowRequest, WindowRows


def forgets_the_token(_check_fence: Any) -> Any:
    def mutated(tx: Transaction, fence: Fence | None, now: int) -> None:
        if fence is not None and granting.live_lock(tx, fence.lock_key, now) is None:
            raise StateConflictError(code="lock_lost")

    return mutated


def forgets_the_lease(_check_fence: Any) -> Any:
    def mutated(tx: Transaction, fence: Fence | None, _now: int) -> None:
        lock = None if fence is None else tx.locks.get(fence.lock_key)
        if fence is not None and (lock is None or lock.token != fence.token):
            raise StateConflictError(code="lock_lost")

    return mutated


def holds_a_moment_longer(_live_lock: Any) -> Any:
    def mutated(tx: Transaction, lock_key: str, now: int) -> LockRecord | None:
        lock = tx.locks.get(lock_key)
        return lock if lock is not None and lock.until >= now else None

    return mutated


def never_ends(_live_lock: Any) -> Any:
    def mutated(tx: Transaction, lock_key: str, _now: int) -> LockRecord | None:
        return tx.locks.get(lock_key)

    return mutated


def sees_no_lock(_live_lock: Any) -> Any:
    def mutated(_tx: Transaction, _lock_key: str, _now: int) -> None:
        return None

    return mutated


def passes_nothing_on(_pass_on: Any) -> Any:
    def mutated(tx: Transaction, lock_key: str, *_rest: object) -> None:
        tx.locks.delete(lock_key)

    return mutated


def groups_what_runs_alone(entry_of: Callable[..., EntryRecord]) -> Any:
    def mutated(new: NewEntry, *arguments: object) -> EntryRecord:
        return entry_of(attrs.evolve(new, runs_alone=False), *arguments)

    return mutated


def claims_nothing(entry_of: Callable[..., EntryRecord]) -> Any:
    def mutated(*arguments: object) -> EntryRecord:
        return attrs.evolve(entry_of(*arguments), claim_key=None)

    return mutated


def keeps_the_claim(end_unrun: Callable[..., None]) -> Any:
    def mutated(tx: Transaction, entry: EntryRecord, reason: str, now: int) -> None:
        end_unrun(tx, entry, reason, now)
        ended = tx.entries.get(entry.ticket_id)
        if ended is not None:
            tx.entries.update(attrs.evolve(ended, claim_key=entry.claim_key))

    return mutated


def never_expires(_is_expired: Any) -> Any:
    def mutated(_entry: EntryRecord, _now: int) -> bool:
        return False

    return mutated


def joins_sessions(group_of: Callable[..., list[EntryRecord]]) -> Any:
    def mutated(tx: Transaction, head: EntryRecord, now: int) -> list[EntryRecord]:
        waiting = tx.entries.waiting_in_lane(head.lock_key, head.lane)
        return list(waiting) if head.coalesces else group_of(tx, head, now)

    return mutated


def reads_one_twice(older: Callable[..., list[RowRecord]]) -> Any:
    def mutated(self: Any, position: int | None, limit: int) -> list[RowRecord]:
        return older(self, None if position is None else position + 1, limit)

    return mutated


def ignores_the_session(read_window: Callable[..., WindowRows]) -> Any:
    def mutated(
        tx: Transaction, conversation: int, session: int, window: WindowRequest, now: int
    ) -> WindowRows:
        whole = attrs.evolve(window, whole_conversation=True)
        return read_window(tx, conversation, session, whole, now)

    return mutated


def begins_numbers_anew(clear: Callable[..., Mapping[str, int]]) -> Any:
    def mutated(tx: MemoryTables, key: ConversationKey, *rest: Any, **more: Any) -> object:
        counts = clear(tx, key, *rest, **more)
        found = tx.conversations.get(key.encode())
        if found is not None:
            tx.conversations._conversations.put(found.key, attrs.evolve(found, last_seq=0))
        return counts

    return mutated


def joins_with_a_colon(_encode: Any) -> Any:
    def mutated(self: ConversationKey) -> str:
        return ":".join(part or "" for part in attrs.astuple(self))

    return mutated


def ends_in_two_writes(finish: Callable[..., Awaitable[Finished]]) -> Any:
    async def mutated(self: Any, ticket_id: str, /, *, answer: Any, **more: Any) -> Finished:
        if answer is not None:
            await self.progress(ticket_id, answer=answer, ctx=more["ctx"])
            await asyncio.sleep(0)
        return await finish(self, ticket_id, answer=answer, **more)

    return mutated


def settles_at_once(_settling_until: Any) -> Any:
    def mutated(_tx: Transaction, _head: EntryRecord) -> int:
        return 0

    return mutated


def settles_from_its_first_message(_settling_until: Any) -> Any:
    def mutated(_tx: Transaction, head: EntryRecord) -> int:
        return head.settles_at or 0

    return mutated


def settles_too_late(_settling_until: Any) -> Any:
    def mutated(tx: Transaction, head: EntryRecord) -> int:
        newest = tx.entries.last_waiting(head.lock_key) or head
        return newest.settles_at or 0

    return mutated


def sweeps_every_agent(find_lines: Callable[..., sweeping.Lines]) -> Any:
    def mutated(tx: Transaction, now: int, *, agent: str | None, above: int) -> sweeping.Lines:
        found = tx.entries.stalled(now, above, sweeping.FOUND_AT_ONCE)
        whole = find_lines(tx, now, agent=agent, above=above)
        return attrs.evolve(whole, lock_keys=tuple(entry.lock_key for entry in found))

    return mutated


def sweeps_one_page(find_lines: Callable[..., sweeping.Lines]) -> Any:
    def mutated(*given: Any, **more: Any) -> sweeping.Lines:
        return attrs.evolve(find_lines(*given, **more), next=None)

    return mutated


def ends_the_others_too(quarantine: Callable[..., Any]) -> Any:
    def mutated(tx: Transaction, _ticket_ids: Any, fence: Fence, *rest: Any) -> Any:
        lock = tx.locks.get(fence.lock_key)
        run = [] if lock is None else tx.entries.of_run(lock.ticket_id)
        return quarantine(tx, [entry.ticket_id for entry in run], fence, *rest)

    return mutated


MUTANTS = (
    Mutant(
        name="runs a line before it has settled",
        target=granting,
        attribute="settling_until",
        replace=settles_at_once,
        caught_by="settling.a_line_runs_when_it_has_settled",
    ),
    Mutant(
        name="lets a line settle from its first message on",
        target=granting,
        attribute="settling_until",
        replace=settles_from_its_first_message,
        caught_by="settling.a_line_runs_when_it_has_settled",
    ),
    Mutant(
        name="lets the oldest message of a line expire",
        target=granting,
        attribute="settling_until",
        replace=settles_too_late,
        caught_by="settling.a_line_settles_before_its_oldest_message_expires",
    ),
    Mutant(
        name="sweeps the lines of every agent",
        target=sweeping,
        attribute="find_lines",
        replace=sweeps_every_agent,
        caught_by="sweeping.a_sweep_is_of_one_agent",
    ),
    Mutant(
        name="sweeps the first lines alone",
        target=sweeping,
        attribute="find_lines",
        replace=sweeps_one_page,
        caught_by="sweeping.a_sweep_finds_all_of_many_lines",
    ),
    Mutant(
        name="puts aside the others, too",
        target=granting,
        attribute="quarantine",
        replace=ends_the_others_too,
        caught_by="sweeping.what_cannot_be_read_is_put_aside",
    ),
    Mutant(
        name="forgets the token of a fence",
        target=store,
        attribute="check_fence",
        replace=forgets_the_token,
        caught_by="leases.an_old_fence_writes_nothing_after_a_takeover",
    ),
    Mutant(
        name="forgets the lease of a fence",
        target=store,
        attribute="check_fence",
        replace=forgets_the_lease,
        caught_by="leases.an_old_fence_writes_nothing_after_its_lease",
    ),
    Mutant(
        name="holds a lock a moment longer than its lease",
        target=granting,
        attribute="live_lock",
        replace=holds_a_moment_longer,
        caught_by="leases.a_lock_is_held_until_its_lease_is_over",
    ),
    Mutant(
        name="revives a lease that is over",
        target=finishing,
        attribute="live_lock",
        replace=never_ends,
        caught_by="leases.a_lease_that_is_over_is_never_revived",
    ),
    Mutant(
        name="clears under a running turn",
        target=running,
        attribute="live_lock",
        replace=sees_no_lock,
        caught_by="clearing.nothing_is_cleared_while_a_turn_runs",
    ),
    Mutant(
        name="releases a lock that others wait for",
        target=finishing,
        attribute="pass_on",
        replace=passes_nothing_on,
        caught_by="interleavings.no_order_of_steps_strands_a_message",
    ),
    Mutant(
        name="writes no claim when it accepts",
        target=admission,
        attribute="_entry_of",
        replace=claims_nothing,
        caught_by="claims.a_repeat_is_recognised_at_every_stage",
    ),
    Mutant(
        name="takes what runs alone into a group",
        target=admission,
        attribute="_entry_of",
        replace=groups_what_runs_alone,
        caught_by="admission.what_runs_alone_is_in_no_group",
    ),
    Mutant(
        name="keeps the claim of who was pushed out",
        target=admission,
        attribute="end_unrun",
        replace=keeps_the_claim,
        caught_by="admission.a_full_line_drops_the_oldest",
    ),
    Mutant(
        name="runs expired messages",
        target=granting,
        attribute="is_expired",
        replace=never_expires,
        caught_by="admission.a_message_past_its_life_never_runs",
    ),
    Mutant(
        name="runs two sessions at once",
        target=granting,
        attribute="_group_of",
        replace=joins_sessions,
        caught_by="admission.a_new_session_begins_a_group",
    ),
    Mutant(
        name="reads the row of a cursor again",
        target=visible.VisibleRows,
        attribute="older",
        replace=reads_one_twice,
        caught_by="pages.walking_older_meets_every_row_once",
    ),
    Mutant(
        name="shows the rows of other sessions",
        target=reading,
        attribute="read_window",
        replace=ignores_the_session,
        caught_by="windows.a_window_is_of_one_session",
    ),
    Mutant(
        name="uses numbers again after clearing",
        target=clearing,
        attribute="clear",
        replace=begins_numbers_anew,
        caught_by="clearing.numbers_are_never_used_again",
    ),
    Mutant(
        name="joins the parts of keys with a colon",
        target=ConversationKey,
        attribute="encode",
        replace=joins_with_a_colon,
        caught_by="keys.conversations_whose_parts_join_alike_stay_apart",
    ),
    Mutant(
        name="writes answer and end one after the other",
        target=Turns,
        attribute="finish",
        replace=ends_in_two_writes,
        caught_by="cancelling.a_cancelled_end_is_whole",
    ),
)
