"""Clearing: deleting what was said, while the counters survive."""

from __future__ import annotations

import attrs

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.records import SessionRecord
from vitehub_chat.state.steps.inventory import erase_scope
from vitehub_chat.state.steps.running import check_at_rest
from vitehub_chat.state.steps.scopes import Scope, find_scope, sessions_in
from vitehub_chat.state.tables import Transaction


def clear(
    tx: Transaction,
    key: ConversationKey,
    session_id: str | None,
    now: int,
    *,
    delete_session: bool,
) -> dict[str, int]:
    """Carry out `SessionStore.clear`."""
    scope = find_scope(tx, key, session_id)
    check_at_rest(tx, scope, now, ignores_waiting=True)
    return clear_scope(tx, scope, now, delete_session=delete_session)


def clear_scope(tx: Transaction, scope: Scope, now: int, *, delete_session: bool) -> dict[str, int]:
    """Delete what was said in a conversation or a session, and count it."""
    sessions = sessions_in(tx, scope)
    counts = erase_scope(tx, scope, now)
    for session in sessions:
        counts["sessions"] += _empty(tx, session, delete_session=delete_session)
    if scope.conversation is not None and any(counts.values()):
        tx.conversations.next_generation(scope.conversation.key)
    return counts


def _empty(tx: Transaction, session: SessionRecord, *, delete_session: bool) -> int:
    if delete_session:
        tx.sessions.delete(session.key)
        return 1
    if session.message_count:
        tx.sessions.update(
            attrs.evolve(session, message_count=0, turn_count=0, generation=session.generation + 1)
        )
    return 0
