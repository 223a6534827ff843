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
        return counts
    sessions = _sessions(tx, conversation, session_id)
    if session_id is not None and not sessions:
        return counts
    _refuse_while_running(tx, encoded, now)
    narrowed = sessions[0].key if session_id is not None else None
    counts["rows"] = tx.rows.delete(conversation.key, narrowed)
    counts["summaries"] = tx.summaries.delete(conversation.key, narrowed)
    counts["entries"] = tx.entries.delete_conversation(encoded, narrowed)
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


def _refuse_while_running(tx: Transaction, encoded: str, now: int) -> None:
    for entry in tx.entries.open_in(encoded):
        lock = live_lock(tx, entry.lock_key, now)
        if entry.state != "waiting" and lock and lock.ticket_id == entry.run_ticket_id:
            raise ChatBusyError("a turn of this conversation is running", code="turn_in_progress")


def _empty(tx: Transaction, session: SessionRecord, *, delete_session: bool) -> int:
    if delete_session:
        tx.sessions.delete(session.key)
        return 1
    if session.message_count:
        tx.sessions.update(
            attrs.evolve(session, message_count=0, turn_count=0, generation=session.generation + 1)
        )
    return 0
