"""Principals: who calls a route, and which conversation that caller means."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from vitehub_chat.model.json_text import JsonObject
from vitehub_chat.model.keys import ConversationKey, fit_id

CHANNEL = "web"
"""What the channels of the conversations begin with that `per_user_sessions` names."""


@attrs.frozen
class Principal:
    """Who calls, as the application authenticated it.

    Attributes:
        tenant_id: Whose data it may see; None is the tenant without name.
        user_id: Who it is within the tenant; the owner of the sessions it starts. Not empty.
        roles: What it may do; drivers find them as `roles` of the invoker's facts.
        meta: Further facts about it, for the driver.
    """

    tenant_id: str | None
    user_id: str
    roles: tuple[str, ...] = ()
    meta: JsonObject = attrs.field(factory=dict)


@attrs.frozen
class SessionRef:
    """The conversation that a client's name for it means.

    Attributes:
        key: The conversation; without an agent it is one of the mounted agent.
        session_id: Narrows it to one session; None is the whole conversation.
    """

    key: ConversationKey
    session_id: str | None = None


Authenticate = Callable[[Any], Principal | Awaitable[Principal | None] | None]
"""Takes the request; None means that nobody is known."""

ResolveSession = Callable[[Any, Principal, str], SessionRef | Awaitable[SessionRef | None] | None]
"""Takes the request, who calls and the client's name; None means that there is none for them."""


def per_user_sessions(request: Any, principal: Principal, chat_id: str) -> SessionRef:  # noqa: ARG001 - a resolver is given the request
    """Give every user a namespace of their own: no name reaches another user's conversation.

    The user is part of the channel, so that ids of sessions, which are looked up in a whole
    channel, reach nobody else's either.
    """
    channel = fit_id(f"{CHANNEL}:{principal.user_id}")
    return SessionRef(ConversationKey(principal.tenant_id, None, channel, chat_id))
