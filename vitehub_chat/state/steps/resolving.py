"""Resolving: which stored session a turn belongs to, or how a new one is called."""

from __future__ import annotations

import attrs

from vitehub_chat.model.clock import from_epoch_us, in_us, to_epoch_us
from vitehub_chat.model.keys import fit_id
from vitehub_chat.state.codec import check_text
from vitehub_chat.state.records import ConversationRecord, SessionRecord
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import SessionRef, SessionRequest


def resolve_session(
    tx: Transaction, request: SessionRequest, now: int
) -> tuple[SessionRecord, bool]:
    """Return the session that a turn continues, or the one it would start, and whether it is new.

    Writes nothing; a new session has the key 0.
    """
    scope = _scope_of(request)
    current = _current(tx, scope, request)
    if current is not None and not _is_over(current, request, now):
        return current, False
    return _new_session(tx, scope, request, now), True


def ref_of(session: SessionRecord, *, is_new: bool) -> SessionRef:
    """Return what a turn needs to know of a session."""
    return SessionRef(
        session_id=session.session_id,
        key=session.key,
        conversation=session.conversation,
        first_message_id=session.first_message_id,
        started_at=from_epoch_us(session.started_at),
        is_new=is_new,
        began_by_new=session.began_by_new,
        generation=session.generation,
    )


def _scope_of(request: SessionRequest) -> str:
    """Return where the base is unique: the channel, or without a base the conversation."""
    if request.policy is not None and request.base is not None:
        return request.conversation.encode_channel()
    return request.conversation.encode()


def _current(tx: Transaction, scope: str, request: SessionRequest) -> SessionRecord | None:
    if request.policy is None:
        conversation = tx.conversations.get(scope)
        if conversation is None:
            return None
        return tx.sessions.of_conversation(conversation.key, None)
    if request.base is None:
        return tx.sessions.latest(scope, None)
    named = _by_id(tx, request)
    latest = tx.sessions.latest(scope, request.base)
    if named is None or latest is None:
        return named or latest
    # Silence ends a session, so its base means the newest; without silence an id means itself.
    if request.policy.strategy == "manual":
        return named
    return max(named, latest, key=lambda session: session.key)


def _by_id(tx: Transaction, request: SessionRequest) -> SessionRecord | None:
    """Find a stored session by its id: begun with a base, or in this conversation without one."""
    wanted = request.base or ""
    in_channel = tx.sessions.by_id(request.conversation.encode_channel(), wanted)
    return in_channel or tx.sessions.by_id(request.conversation.encode(), wanted)


def _is_over(session: SessionRecord, request: SessionRequest, now: int) -> bool:
    policy = request.policy
    if policy is None:
        return False
    if request.starts_new:
        return True
    if policy.strategy == "manual" or policy.idle_timeout is None:
        return False
    at = now if request.begins_at is None else to_epoch_us(request.begins_at)
    return at - session.last_message_at > in_us(policy.idle_timeout)


def _new_session(tx: Transaction, scope: str, request: SessionRequest, now: int) -> SessionRecord:
    check_text(request.user_key, "user_key")
    check_text(request.chat_id, "chat_id")
    key = request.conversation
    encoded = key.encode()
    conversation = tx.conversations.get(encoded)
    started_at = now if request.begins_at is None else to_epoch_us(request.begins_at)
    return SessionRecord(
        scope=scope,
        base=request.base if request.policy is not None else None,
        session_id=_name(tx, request, conversation),
        conversation_key=0 if conversation is None else conversation.key,
        conversation=encoded,
        tenant=key.tenant,
        agent=key.agent,
        user_key=request.user_key,
        chat_id=request.chat_id,
        first_message_id=request.begins_with,
        started_at=started_at,
        last_message_at=min(started_at, now),
        began_by_new=request.starts_new,
    )


def _name(
    tx: Transaction,
    request: SessionRequest,
    conversation: ConversationRecord | None,
) -> str | None:
    policy, base = request.policy, request.base
    if policy is None:
        return None
    if base is not None and _is_unused(tx, request, base):
        return base
    how = "idle"
    if request.starts_new:
        how = "new"
    elif policy.strategy == "manual":
        return None
    next_seq = 1 if conversation is None else conversation.last_seq + 1
    begins = request.begins_with or str(next_seq)
    name = f"{how}:{begins}" if base is None else f"{base}:{how}:{begins}"
    # A message id may begin a second session; the next number has begun none.
    free = fit_id(name)
    while not _is_unused(tx, request, free):
        free, next_seq = fit_id(f"{name}:{next_seq}"), next_seq + 1
    return free


def _is_unused(tx: Transaction, request: SessionRequest, name: str) -> bool:
    """Tell whether a name means no session, of this channel or of this conversation."""
    scopes = (request.conversation.encode_channel(), request.conversation.encode())
    return all(
        tx.sessions.by_id(scope, name) is None and tx.sessions.latest(scope, name) is None
        for scope in scopes
    )


def store_session(
    tx: Transaction, session: SessionRecord, conversation: ConversationRecord
) -> SessionRecord:
    """Insert a new session in its conversation."""
    return tx.sessions.insert(attrs.evolve(session, conversation_key=conversation.key))
