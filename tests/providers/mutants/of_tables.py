"""Mutants whose tables are wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import attrs

from tests.providers.mutants.mutant import Mutant
from vitehub_chat.state.memory import rows
from vitehub_chat.state.memory.entries import MemoryEntries
from vitehub_chat.state.memory.locks import MemoryLocks
from vitehub_chat.state.memory.rows import MemoryRows
from vitehub_chat.state.memory.sessions import MemorySessions
from vitehub_chat.state.memory.store import MemoryStore, MemoryTables
from vitehub_chat.state.memory.summaries import MemorySummaries
from vitehub_chat.state.providers.memory import MemoryAgentState
from vitehub_chat.state.records import EntryRecord, RowRecord, SessionRecord
from vitehub_chat.state.tables import RowQuery, SessionQuery


def drops_the_newest(select: Callable[..., Sequence[RowRecord]]) -> Any:
    def mutated(self: MemoryRows, query: RowQuery, /) -> Sequence[RowRecord]:
        found = select(self, query)
        return found[1:] if query.order == "descending" else found

    return mutated


def knows_no_message(_by_message: Any) -> Any:
    def mutated(_self: MemoryRows, _key: int, _message_id: str, _now: int, /) -> None:
        return None

    return mutated


def folds_case(by_message: Callable[..., RowRecord | None]) -> Any:
    def mutated(self: MemoryRows, key: int, message_id: str, now: int, /) -> RowRecord | None:
        folded = by_message(self, key, message_id.lower(), now)
        return folded or by_message(self, key, message_id, now)

    return mutated


def expires_a_moment_late(_is_expired: Any) -> Any:
    def mutated(row: RowRecord, now: int) -> bool:
        return row.expires_at is not None and row.expires_at < now

    return mutated


def rescues_nothing(_keep_forever: Any) -> Any:
    def mutated(_self: MemoryRows) -> None:
        return None

    return mutated


def keeps_summaries(_delete: Any) -> Any:
    def mutated(_self: MemorySummaries, _conversation_key: int, _session_key: int | None, /) -> int:
        return 1

    return mutated


def begins_tokens_anew(_next_token: Any) -> Any:
    def mutated(self: MemoryLocks) -> int:
        if len(self) == 0:
            self._tokens = count(1)
        return next(self._tokens)

    return mutated


def takes_the_last(_first_waiting: Any) -> Any:
    def mutated(self: MemoryEntries, lock_key: str, /) -> EntryRecord | None:
        return self._entries.get(self._waiting.last(lock_key))

    return mutated


def counts_the_expired(_count_waiting: Any) -> Any:
    def mutated(self: MemoryEntries, lock_key: str, _now: int, /) -> int:
        return self._waiting.count(lock_key)

    return mutated


def lists_every_tenant(select: Callable[..., Sequence[SessionRecord]]) -> Any:
    def mutated(self: MemorySessions, query: SessionQuery, /) -> Sequence[SessionRecord]:
        tenants = {session.tenant for session in self._sessions._records.values()}
        found = [
            session
            for tenant in tenants
            for session in select(self, attrs.evolve(query, tenant=tenant))
        ]
        return sorted(found, key=lambda each: each.key)[: query.limit]

    return mutated


def skips_equal_times(select: Callable[..., Sequence[SessionRecord]]) -> Any:
    def mutated(self: MemorySessions, query: SessionQuery, /) -> Sequence[SessionRecord]:
        after = None if query.after is None else (query.after[0], 0)
        return select(self, attrs.evolve(query, after=after))

    return mutated


def undoes_nothing(_write: Any) -> Any:
    def mutated(self: MemoryStore, step: Callable[[MemoryTables], object], /) -> object:
        with self._lock:
            try:
                return step(self.tables)
            finally:
                self._journal.commit()

    return mutated


def works_when_closed(_check_open: Any) -> Any:
    def mutated(_self: MemoryAgentState) -> None:
        return None

    return mutated


MUTANTS = (
    Mutant(
        name="drops the newest row",
        target=MemoryRows,
        attribute="select",
        replace=drops_the_newest,
        caught_by="windows.a_window_is_the_newest_rows_ascending",
    ),
    Mutant(
        name="makes a new row in place of a known one",
        target=MemoryRows,
        attribute="by_message",
        replace=knows_no_message,
        caught_by="transcripts.the_same_id_replaces_its_row",
    ),
    Mutant(
        name="folds the case of message ids",
        target=MemoryRows,
        attribute="by_message",
        replace=folds_case,
        caught_by="keys.messages_of_any_id_stay_apart",
    ),
    Mutant(
        name="lets rows expire a moment late",
        target=rows,
        attribute="_is_expired",
        replace=expires_a_moment_late,
        caught_by="retention.a_row_is_gone_exactly_in_time",
    ),
    Mutant(
        name="rescues no expired row",
        target=MemoryRows,
        attribute="keep_forever",
        replace=rescues_nothing,
        caught_by="retention.forever_rescues_what_is_still_there",
    ),
    Mutant(
        name="keeps summaries when it clears",
        target=MemorySummaries,
        attribute="delete",
        replace=keeps_summaries,
        caught_by="clearing.clearing_deletes_everything_that_was_said",
    ),
    Mutant(
        name="begins tokens anew when no lock is held",
        target=MemoryLocks,
        attribute="next_token",
        replace=begins_tokens_anew,
        caught_by="leases.tokens_always_rise",
    ),
    Mutant(
        name="runs who came last",
        target=MemoryEntries,
        attribute="first_waiting",
        replace=takes_the_last,
        caught_by="admission.messages_wait_their_turn",
    ),
    Mutant(
        name="gives expired messages a place in the line",
        target=MemoryEntries,
        attribute="count_waiting",
        replace=counts_the_expired,
        caught_by="admission.expired_messages_take_no_place",
    ),
    Mutant(
        name="lists the sessions of every tenant",
        target=MemorySessions,
        attribute="list",
        replace=lists_every_tenant,
        caught_by="keys.tenants_stay_apart",
    ),
    Mutant(
        name="skips sessions of the same time",
        target=MemorySessions,
        attribute="list",
        replace=skips_equal_times,
        caught_by="sessions.walking_a_list_meets_every_session_once",
    ),
    Mutant(
        name="keeps half of a failed write",
        target=MemoryStore,
        attribute="write",
        replace=undoes_nothing,
        caught_by="transcripts.a_batch_is_stored_whole_or_not",
    ),
    Mutant(
        name="works when it is closed",
        target=MemoryAgentState,
        attribute="_check_open",
        replace=works_when_closed,
        caught_by="lifecycle.use_after_closing_is_refused",
    ),
)
