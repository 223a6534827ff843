"""Making room: a turn takes the place of stored messages, from one of them on."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.records import RowRecord, SessionRecord
from vitehub_chat.state.row_requests import TruncateRequest
from vitehub_chat.state.steps.recording import Writing, record_turn
from vitehub_chat.state.steps.running import check_at_rest
from vitehub_chat.state.steps.scopes import find_scope, no_message, scope_of
from vitehub_chat.state.steps.truncating import cut_off
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import (
    NewEntry,
    NewRow,
    Recorded,
    SessionRequest,
    WindowRequest,
)


def check_replaceable(tx: Transaction, new: NewEntry, now: int) -> None:
    """Refuse a message that replaces others while a turn of their session waits or runs.

    Raises:
        ChatBusyError: One does (`turn_in_progress`).
        NotFoundError: There is no such message in a conversation that has some.
    """
    scope = find_scope(tx, new.conversation, new.wanted_id)
    check_at_rest(tx, scope, now)
    session = _session_of(tx, new.conversation, new.wanted_id, new.replaces or "", now)
    if session is not None:
        check_at_rest(tx, scope_of(tx, session), now)
    elif scope.conversation is not None:
        raise no_message()


def record_replacing(
    tx: Transaction,
    ticket_id: str,
    rows: Sequence[NewRow],
    request: SessionRequest,
    window: WindowRequest | None,
    replaces: str,
    writing: Writing,
) -> Recorded:
    """Cut a session off from a message on, then record a turn in it.

    Raises:
        NotFoundError: There is no such message.
        ChatBusyError: Another turn of the session runs (`turn_in_progress`).
    """
    now = writing.now
    base = request.base if request.policy is not None else None
    session = _session_of(tx, request.conversation, base, replaces, now)
    if session is None:
        raise no_message()
    scope = scope_of(tx, session)
    check_at_rest(tx, scope, now, ignores_waiting=True, ignores_run=ticket_id)
    cut = TruncateRequest(message_id=replaces, session_id=session.session_id)
    truncated = cut_off(tx, scope, cut, writing)
    left = tx.sessions.get(session.key) or session
    recorded = record_turn(tx, ticket_id, rows, request, window, writing, into=left)
    return attrs.evolve(recorded, truncated=truncated)


def _session_of(
    tx: Transaction, key: ConversationKey, base: str | None, message_id: str, now: int
) -> SessionRecord | None:
    """Return the session of a stored message; one that was asked for has to be it.

    Messages of a session that is continued from another thread are where it began.
    """
    for row in _rows_of(tx, key, base, message_id, now):
        session = tx.sessions.get(row.session_key)
        if session is not None and base in {None, session.base, session.session_id}:
            return session
    return None


def _rows_of(
    tx: Transaction, key: ConversationKey, base: str | None, message_id: str, now: int
) -> Sequence[RowRecord]:
    here = tx.conversations.get(key.encode())
    keys = [] if here is None else [here.key]
    named = None if base is None else tx.sessions.by_id(key.encode_channel(), base)
    if named is not None and named.conversation_key not in keys:
        keys.append(named.conversation_key)
    found = [tx.rows.by_message(each, message_id, now) for each in keys]
    return [row for row in found if row is not None]
