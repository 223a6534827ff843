"""Conversations: the sessions of one tenant and agent, of one owner or for the operator."""

from __future__ import annotations

from datetime import datetime

from vitehub_chat.conversation.conversation import OpenState, open_given, page_limit
from vitehub_chat.model.rows import SessionPage

MAX_SESSIONS = 100


class Conversations:
    """Past conversations.

    Args:
        state: An opened state, or a function that opens it.
        tenant: Exactly this tenant; None is the tenant without name.
        agent: Only those of this agent.
        user_key: Only those of this owner. Without it every owner's: the operator's view, which
            no route of a client may get.
    """

    def __init__(
        self,
        state: OpenState,
        *,
        tenant: str | None,
        agent: str | None,
        user_key: str | None = None,
    ) -> None:
        self._state = state
        self._tenant = tenant
        self._agent = agent
        self._user_key = user_key

    async def sessions(
        self,
        *,
        limit: int = 20,
        cursor: str | None = None,
        updated_since: datetime | None = None,
    ) -> SessionPage:
        """Return sessions, the newest activity first; a limit above 100 is 100.

        One that moves up while pages are read may be missed or come twice; merge by id.

        Raises:
            InputError: The limit is no int or below 1.
            CursorError: The cursor is not one of this list.
        """
        return await (await open_given(self._state)).sessions.list(
            self._tenant,
            agent=self._agent,
            user_key=self._user_key,
            limit=page_limit(limit, MAX_SESSIONS),
            cursor=cursor,
            updated_since=updated_since,
        )
