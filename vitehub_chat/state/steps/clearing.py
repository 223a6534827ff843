"""Clearing: deleting what was said, while the counters survive."""

from __future__ import annotations

import attrs

from vitehub_chat.errors import ChatBusyError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.records import ConversationRecord, SessionRecord
from vitehub_chat.state.steps.granting import live_lock
from vitehub_chat.state.tables import Transaction

STORES = ("rows", "summaries", "entries", "sessions")


def clear(
    tx: Transaction,
    key: ConversationKey,
    session_id: str | None,
    now: int,
    *,
    delete_session: bool,
) -> dict[str, int]:
    """Carry out `SessionStore.clear`."""
    counts = dict.fromkeys(STORES, 0)
    encoded = key.encode()
    conversation = tx.conversations.get(encoded)
    if conversation is None:
        if session_id is None:
            counts["entries"] = _forget_entries(tx, encoded, None, now)
        return counts
    sessions = _sessions(tx, conversation, session_id)
    if session_id is not None and not sessions:
        return counts
    narrowed = sessions[0].key if session_id is not None else None
    counts["entries"] = _forget_entries(tx, encoded, narrowed, now)
    counts["rows"] = tx.rows.delete(conversation.key, narrowed)
    counts["summaries"] = tx.summaries.delete(conversation.key, narrowed)
    for session in sessions:
        counts["sessions"] += _empty(tx, session, delete_session=delete_session)
    if any(counts.values()):
        tx.conversations.next_generation(conversation.key)
    return counts


def _sessions(
    tx: Transaction, conversation: ConversationRecord, session_id: str | None
) -> list[SessionRecord]:
    if session_id is None:
        return list(tx.sessions.all_of(conversation.key))
    session = tx.sessions.of_conversation(conversation.key, session_id)
    return [] if session is None else [session]


def _forget_entries(tx: Transaction, encoded: str, session_key: int | None, now: int) -> int:
    for entry in tx.entries.open_in(encoded):
        lock = live_lock(tx, entry.lock_key, now)
        if entry.state != "waiting" and lock and lock.ticket_id == entry.run_ticket_id:
            raise ChatBusyError("a turn of this conversation is running", code="turn_in_progress")
    return tx.entries.delete_conversation(encoded, session_key)


def _empty(tx: Transaction, session: SessionRecord, *, delete_session: bool) -> int:
    if delete_session:
        tx.sessions.delete(session.key)
        return 1
    if session.message_count:
        tx.sessions.update(
            attrs.evolve(session, message_count=0, turn_count=0, generation=session.generation + 1)
        )
    return 0
