"""Listing: sessions as lists show them."""

from __future__ import annotations

import contextlib
from datetime import datetime

import attrs

from vitehub_chat.errors import NotFoundError, StateError
from vitehub_chat.model.clock import from_epoch_us, to_epoch_us
from vitehub_chat.model.json_text import replace_surrogates
from vitehub_chat.model.keys import ConversationKey, encode_key
from vitehub_chat.model.rows import SessionInfo, SessionPage, Summary
from vitehub_chat.state.codec import check_intact
from vitehub_chat.state.cursors import decode_cursor, encode_cursor
from vitehub_chat.state.records import SessionRecord, SummaryRecord
from vitehub_chat.state.steps.scopes import find_scope, find_session
from vitehub_chat.state.tables import SessionQuery, Transaction


@attrs.frozen(kw_only=True)
class ListRequest:
    """Which sessions are asked for."""

    tenant: str | None
    agent: str | None
    user_key: str | None
    conversation: ConversationKey | None
    limit: int
    cursor: str | None
    updated_since: datetime | None


def list_sessions(tx: Transaction, request: ListRequest) -> SessionPage:
    """Carry out `SessionStore.list`."""
    scope = encode_key("sessions", request.tenant, request.agent, request.user_key)
    after = None
    if request.cursor is not None:
        after = decode_cursor(tx.secret, scope, request.cursor)
    conversation_key = None
    if request.conversation is not None:
        conversation = tx.conversations.get(request.conversation.encode())
        if conversation is None:
            return SessionPage(items=())
        conversation_key = conversation.key
    since = request.updated_since
    query = SessionQuery(
        tenant=request.tenant,
        agent=request.agent,
        user_key=request.user_key,
        conversation_key=conversation_key,
        after=after,
        updated_since=None if since is None else to_epoch_us(since),
        limit=request.limit + 1,
    )
    found = tx.sessions.list(query)
    page = found[: request.limit]
    following = None
    if len(found) > len(page):
        following = encode_cursor(tx.secret, scope, page[-1].last_message_at, page[-1].key)
    items: list[SessionInfo] = []
    for session in page:
        with contextlib.suppress(StateError):
            items.append(info_of(session))
    return SessionPage(items=tuple(items), next_cursor=following, unreadable=len(page) - len(items))


def get_session(tx: Transaction, key: ConversationKey, session_id: str | None) -> SessionInfo:
    """Carry out `SessionStore.get`."""
    return info_of(_session(tx, key, session_id))


def rename_session(
    tx: Transaction, key: ConversationKey, session_id: str | None, title: str | None
) -> SessionInfo:
    """Carry out `SessionStore.rename`."""
    session = _session(tx, key, session_id)
    renamed = attrs.evolve(session, title=None if title is None else replace_surrogates(title))
    tx.sessions.update(renamed)
    return info_of(renamed)


def save_summary(
    tx: Transaction, key: ConversationKey, session_id: str | None, text: str, now: int
) -> Summary:
    """Carry out `SummaryStore.save_manual`."""
    session_key = 0 if session_id is None else _session(tx, key, session_id).key
    conversation = tx.conversations.ensure(key.encode())
    text = replace_surrogates(text)
    tx.summaries.put(
        SummaryRecord(
            conversation_key=conversation.key, session_key=session_key, text=text, created_at=now
        )
    )
    return Summary(text=text, created_at=from_epoch_us(now))


def get_summary(tx: Transaction, key: ConversationKey, session_id: str | None) -> Summary | None:
    """Carry out `SummaryStore.get_manual`."""
    scope = find_scope(tx, key, session_id)
    if scope.conversation is None or not scope.exists:
        return None
    found = tx.summaries.get(scope.conversation.key, scope.session_key or 0)
    if found is None:
        return None
    try:
        check_intact(found.text)
        return Summary(text=found.text, created_at=from_epoch_us(found.created_at))
    except (ValueError, TypeError, OverflowError) as error:
        raise StateError("a stored summary cannot be read", code="corrupt") from error


def info_of(session: SessionRecord) -> SessionInfo:
    """Return a session as lists show it.

    Raises:
        StateError: It cannot be read (`corrupt`).
    """
    try:
        check_intact(session.chat_id, session.session_id, session.title, session.user_key)
        check_intact(session.conversation)
        return SessionInfo(
            id=session.chat_id,
            session_id=session.session_id,
            conversation=ConversationKey.decode(session.conversation),
            title=session.title,
            started_at=from_epoch_us(session.started_at),
            last_message_at=from_epoch_us(session.last_message_at),
            message_count=session.message_count,
            user_key=session.user_key,
            generation=session.generation,
        )
    except (ValueError, TypeError, OverflowError) as error:
        text = f"the stored session {session.key} cannot be read"
        raise StateError(text, code="corrupt") from error


def _session(tx: Transaction, key: ConversationKey, session_id: str | None) -> SessionRecord:
    session = find_session(tx, key, session_id)
    if session is None:
        raise NotFoundError("no session of that id in this conversation")
    return session
