"""Places: the conversation of a message, and the lock that its turn has to hold."""

from __future__ import annotations

import inspect
from typing import get_args

import attrs

from vitehub_chat.conversation.continuing import digest_settled
from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.model.keys import ConversationKey, check_id, encode_key
from vitehub_chat.model.policies import ChatPolicy, LockScope, LockScopeQuestion
from vitehub_chat.model.requests import RunInfo, TurnRequest
from vitehub_chat.selection.session_ids import wanted_id

_SCOPES = get_args(LockScope)


@attrs.frozen(kw_only=True)
class Place:
    """Where a turn happens.

    Attributes:
        conversation: The conversation; its thread is None if nothing names one.
        wanted_id: The session that the call asks for, or None.
        is_named: Whether the conversation is told apart from those of strangers.
    """

    conversation: ConversationKey
    wanted_id: str | None
    is_named: bool


def find_place(agent: str, request: TurnRequest, policy: ChatPolicy, *, has_state: bool) -> Place:
    """Return where a turn happens.

    Raises:
        InputError: Nothing names the conversation and there is a state to keep it in, or the
            message has a session id that cannot be stored.
    """
    run = request.run or RunInfo()
    wanted = wanted_id(request.session, request.current, policy.sessions)
    if wanted is not None:
        check_id(wanted, f"messages[{len(request.messages) - 1}].metadata")
    thread = run.thread_id if run.thread_id is not None else wanted
    if thread is None and has_state:
        raise InputError(
            "needs to name the conversation",
            path="run.thread_id",
            hint="without it, or a session id, all callers would share one conversation",
        )
    key = ConversationKey(run.tenant_id, agent, run.channel_id, thread)
    return Place(conversation=key, wanted_id=wanted, is_named=thread is not None)


async def find_lock_key(
    place: Place, request: TurnRequest, policy: ChatPolicy, ticket_id: str
) -> str:
    """Return the lock that a turn has to hold; a lock of its own if it shares none.

    Raises:
        ConfigError: A callable `lock_scope` returned something else than a scope.
    """
    own = encode_key("ticket", ticket_id)
    if policy.concurrency.strategy == "parallel":
        return own
    return await scope_key(place, request, policy) or own


async def scope_key(place: Place, request: TurnRequest, policy: ChatPolicy) -> str | None:
    """Return the key that the lock scope gives, or None where it would join strangers."""
    scope = await _scope(place, request, policy)
    key = place.conversation
    if scope == "agent":
        return encode_key("agent", key.tenant, key.agent)
    if scope == "channel":
        return encode_key("channel", key.tenant, key.agent, key.channel)
    if scope == "session" and place.wanted_id is not None:
        return encode_key("session", key.tenant, key.agent, key.channel, place.wanted_id)
    return encode_key("thread", *attrs.astuple(key)) if place.is_named else None


def claim_id(place: Place, request: TurnRequest) -> str | None:
    """Return the id under which a repeat of this message is recognised, or None.

    An assistant message that comes back with tool outputs or decisions is the same message with
    other content, so its content is part of the id.
    """
    if not place.is_named:
        return None
    current = request.current
    named = current.id or (request.run.message_id if request.run is not None else None)
    if named is None or current.role != "assistant":
        return named
    return encode_key(named, digest_settled(current))


async def _scope(place: Place, request: TurnRequest, policy: ChatPolicy) -> LockScope:
    scope = policy.lock_scope or request.lock_scope
    if scope is None:
        return "thread"
    if isinstance(scope, str):
        return scope
    key = place.conversation
    question = LockScopeQuestion(
        agent=key.agent or "",
        tenant=key.tenant,
        channel=key.channel,
        thread=None if request.run is None else request.run.thread_id,
        session_id=place.wanted_id,
        is_dm=request.is_dm,
    )
    answer = scope(question)
    chosen = await answer if inspect.isawaitable(answer) else answer
    if chosen not in _SCOPES:
        raise ConfigError(
            f"the callable returned {type(chosen).__name__}, not one of {', '.join(_SCOPES)}",
            path="lock_scope",
        )
    return chosen
