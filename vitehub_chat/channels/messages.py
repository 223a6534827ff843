"""Messages: what arrives on a channel as the messages and requests of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vitehub_chat.channels.contract import Channel
from vitehub_chat.channels.values import Inbound, Target
from vitehub_chat.model.json_text import JsonObject
from vitehub_chat.model.keys import ConversationKey, check_id
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import ChatPolicy
from vitehub_chat.model.requests import RunInfo, TurnRequest
from vitehub_chat.model.ui_messages import read_message

TRIGGER = "chat.message"
FACTS = "channel"
"""Where a message has the facts of its channel in its metadata."""


def channel_message(kind: str, inbound: Inbound) -> Message:
    """Return what was written on a channel as a message.

    Its id is `<kind>:<message id>`. The account of the channel itself is `assistant`, everybody
    else is `user`, with the name as `metadata.author`. Nothing else of the platform gets into
    places where a session id is looked for.

    Raises:
        InputError: It is no message, or an id cannot be one.
    """
    author = inbound.author
    facts = {**inbound.facts, "kind": kind, "user_id": author.id, "is_bot": author.is_bot}
    message = Message(
        id=f"{kind}:{inbound.message_id}",
        role="assistant" if author.is_me else "user",
        parts=inbound.parts,
        metadata={"author": author.name or author.id, FACTS: facts},
        created_at=inbound.created_at,
    )
    return read_message(message)


def channel_request(channel: Channel, inbound: Inbound, policy: ChatPolicy) -> TurnRequest:
    """Return the request of the turn that a message starts.

    Raises:
        InputError: It is no message, or an id cannot be one.
    """
    message, target = channel_message(channel.kind, inbound), inbound.target
    request = TurnRequest(
        messages=(message,),
        run=RunInfo(
            tenant_id=_checked(target.tenant_id, "target.tenant_id"),
            channel_id=_checked(channel_id_of(channel.kind, target), "target.channel_id"),
            thread_id=_checked(target.thread_id, "target.thread_id"),
            message_id=message.id,
            origin=channel.kind,
        ),
        is_dm=inbound.is_dm,
        trigger=TRIGGER,
        lock_scope=channel.lock_scope,
        reply_to={"kind": channel.kind, "target": attrs.asdict(target)},
    )
    return said_by_author(request, message, policy)


def said_by_author(request: TurnRequest, message: Message, policy: ChatPolicy) -> TurnRequest:
    """Return a request about a message, on behalf of its author.

    Without an `identity` the user key is `<kind>:<user id>`, and none for bots.
    """
    facts: Any = message.metadata.get(FACTS)
    if not isinstance(facts, Mapping) or not isinstance(facts.get("user_id"), str):
        return attrs.evolve(request, messages=(message,), user=None, user_key=None)
    user: JsonObject = {"id": facts["user_id"], "is_bot": bool(facts.get("is_bot"))}
    if isinstance(name := message.metadata.get("author"), str):
        user = {**user, "name": name}
    has_key = policy.identity is None and not user["is_bot"] and message.role == "user"
    user_key = f"{facts.get('kind')}:{user['id']}" if has_key else None
    return attrs.evolve(request, messages=(message,), user=user, user_key=user_key)


def channel_id_of(kind: str, target: Target) -> str:
    """Return the channel of a conversation: that of the platform behind the kind, or the kind.

    Ids of two platforms may be equal; those of their conversations are not.
    """
    return kind if target.channel_id is None else f"{kind}:{target.channel_id}"


def conversation_of(agent: str, kind: str, target: Target) -> ConversationKey:
    """Return the conversation that a thread of a channel is."""
    return ConversationKey(target.tenant_id, agent, channel_id_of(kind, target), target.thread_id)


def read_reply_to(reply_to: JsonObject) -> tuple[str, Target]:
    """Return the kind of channel and the target that a request was stored with."""
    return reply_to["kind"], Target(**reply_to["target"])


def _checked(value: str | None, path: str) -> str | None:
    return None if value is None else check_id(value, path)
