"""Operating: the view of whoever looks after an agent, over every owner's conversations."""

from __future__ import annotations

from starlette.requests import Request

from vitehub_chat.agent.agent import Agent
from vitehub_chat.conversation.conversations import Conversations
from vitehub_chat.errors import InputError, NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import SessionInfo
from vitehub_chat.web.access import UNKNOWN, Access, Place
from vitehub_chat.web.principals import Authenticate, Principal, per_user_sessions


class OperatorAccess(Access):
    """Knows conversations by their keys, whoever owns them.

    What it opens are the conversations of one tenant and agent.

    Args:
        agent: The agent.
        authenticate: Says who calls, and so which tenant's conversations are shown.
    """

    def __init__(self, agent: Agent, authenticate: Authenticate) -> None:
        super().__init__(agent, authenticate, per_user_sessions)
        self._operated = agent

    def conversations(self, principal: Principal) -> Conversations:
        """Return every conversation of the tenant."""
        return self._operated.conversations(tenant=principal.tenant_id)

    async def resolve(
        self,
        request: Request,  # noqa: ARG002 - of the base
        principal: Principal,
        chat_id: str,
        path: str = "id",  # noqa: ARG002 - of the base
    ) -> Place:
        """Return the conversation that an encoded key means.

        Raises:
            NotFoundError: It is no key, or one of another tenant or agent.
        """
        key = _decode(chat_id)
        if key is None or (key.tenant, key.agent) != (principal.tenant_id, self._operated.name):
            raise NotFoundError(UNKNOWN)
        return Place(chat_id=chat_id, key=key, session_id=None)

    async def look_up(self, principal: Principal, place: Place) -> SessionInfo:
        """Return the stored session of a place, the newest one of a whole conversation.

        Raises:
            NotFoundError: Nothing is stored there.
        """
        if place.session_id is None:
            return await super().look_up(principal, place)
        sessions = (await self._operated.open_state()).sessions
        return await sessions.get(place.key, session_id=place.session_id)


def _decode(name: str) -> ConversationKey | None:
    try:
        return ConversationKey.decode(name)
    except InputError:
        return None
