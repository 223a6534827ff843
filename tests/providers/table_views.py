"""What the tables answer about every key that stories use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from tests.providers.table_values import (
    CLAIMS,
    CONVERSATIONS,
    KINDS,
    LANES,
    LOCKS,
    MESSAGES,
    NAMES,
    OWNERS,
    SESSIONS,
    SHOWN,
    START,
    TENANTS,
    TICKETS,
)
from vitehub_chat.state.records import EntryRecord, SessionRecord
from vitehub_chat.state.tables import DocumentQuery, RowQuery, SessionQuery, Transaction

MOST_PAGES = 30


def everything(tx: Transaction) -> object:
    """Return what the tables answer about every key there is."""
    return (
        [tx.locks.get(key) for key in LOCKS],
        [tx.entries.get(ticket) for ticket in TICKETS],
        [tx.entries.by_claim(claim) for claim in CLAIMS],
        [tx.entries.of_run(ticket) for ticket in TICKETS],
        [tx.entries.first_waiting(key) for key in LOCKS],
        [tx.entries.last_waiting(key) for key in LOCKS],
        [tx.entries.stalled(START + late, 0, 99) for late in range(1, 5)],
        [tx.entries.waiting_in_lane(key, lane) for key in LOCKS for lane in LANES],
        [tx.entries.count_waiting(key, START + late) for key in LOCKS for late in range(1, 5)],
        [tx.entries.open_in(encoded) for encoded in CONVERSATIONS],
        [tx.entries.open_of_session(key) for key in (1, 2)],
        tx.entries.with_payload(0, 99),
        [tx.rows.by_author(owner, 0, 99) for owner in OWNERS if owner is not None],
        [walk(tx, SessionQuery(tenant=tenant, limit=2)) for tenant in TENANTS],
        [
            tx.sessions.list(SessionQuery(tenant=tenant, updated_since=START + 2, limit=9))
            for tenant in TENANTS
        ],
        [everything_in(tx, encoded) for encoded in CONVERSATIONS],
        [documents_in(tx, encoded, START + late) for encoded in CONVERSATIONS for late in (0, 2)],
        tx.documents.put_aside(("", "", ""), 99),
    )


def everything_in(tx: Transaction, encoded: str) -> object:
    conversation = tx.conversations.get(encoded)
    if conversation is None:
        return None
    key = conversation.key
    sessions = tx.sessions.all_of(key)
    return (
        conversation,
        sessions,
        [tx.sessions.get(session.key) for session in sessions],
        [tx.sessions.latest(encoded, base) for base in SESSIONS],
        [tx.sessions.by_id(encoded, each) for each in SESSIONS if each is not None],
        [tx.sessions.of_conversation(key, each) for each in SESSIONS],
        tx.rows.select(RowQuery(conversation_key=key, limit=1000, now=START)),
        [tx.rows.select(some_rows(key, is_shown)) for is_shown in SHOWN],
        [tx.rows.by_message(key, message, START + 2) for message in MESSAGES],
        tx.rows.pending(key),
        [tx.summaries.get(key, each) for each in (0, *(s.key for s in sessions))],
    )


def documents_in(tx: Transaction, encoded: str, now: int) -> object:
    some = DocumentQuery(home=encoded, kind="hidden", above=0, below=3, limit=2, now=now)
    return (
        [tx.documents.get(encoded, kind, name, now) for kind in KINDS for name in NAMES],
        [tx.documents.newest(encoded, kind, key, now) for kind in KINDS for key in range(3)],
        tx.documents.numbered(some),
        tx.documents.numbered(attrs.evolve(some, above=None, order="descending")),
        [tx.documents.numbered(attrs.evolve(some, session_key=key)) for key in range(3)],
    )


def delete_bit_by_bit(tx: Transaction) -> object:
    """Delete everything in small portions, and tell after each what is left."""
    tx.entries.release_claims(1, TICKETS[:3])
    released = [tx.entries.by_claim(claim) for claim in CLAIMS]
    purged = [tx.entries.purge(START + late, 1000) for late in range(1, 5)]
    return (
        released,
        purged,
        [delete_from(tx, encoded, session) for encoded in CONVERSATIONS for session in (1, None)],
        [
            sorted(tx.documents.delete_of(encoded, session, START + 2).items())
            for encoded in CONVERSATIONS
            for session in (1, None)
        ],
        everything(tx),
    )


def delete_entries_of(tx: Transaction, encoded: str, session_key: int | None) -> int:
    conversation = tx.conversations.get(encoded)
    if session_key is None:
        key = 0 if conversation is None else conversation.key
        return tx.entries.delete_conversation(encoded, key)
    return tx.entries.delete_session(encoded, session_key, (LANES[0], LANES[0]))


def delete_from(tx: Transaction, encoded: str, session_key: int | None) -> object:
    conversation = tx.conversations.get(encoded)
    entries = delete_entries_of(tx, encoded, session_key)
    if conversation is None:
        return entries
    rows = tx.rows.delete(conversation.key, session_key)
    return entries, rows, tx.summaries.delete(conversation.key, session_key)


def some_rows(key: int, is_shown: bool | None) -> RowQuery:  # noqa: FBT001 - a condition
    return RowQuery(
        conversation_key=key, is_shown=is_shown, above=1, below=4, limit=2, now=START + 2
    )


def walk(tx: Transaction, query: SessionQuery) -> list[Sequence[SessionRecord]]:
    pages = [tx.sessions.list(query)]
    while pages[-1] and len(pages) < MOST_PAGES:
        last = pages[-1][-1]
        after = (last.last_message_at, last.key)
        pages.append(tx.sessions.list(attrs.evolve(query, after=after)))
    return pages


def neutral(answer: Any) -> Any:
    """Return an answer without the positions of entries, whose values are free."""
    if isinstance(answer, list | tuple):
        return [neutral(each) for each in answer]
    if isinstance(answer, EntryRecord):
        return attrs.evolve(answer, position=0)
    return answer
