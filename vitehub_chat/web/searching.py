"""Search route: messages of who calls, by their words."""

from __future__ import annotations

from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from vitehub_chat.agent.agent import Agent
from vitehub_chat.conversation.as_json import hit_to_json
from vitehub_chat.errors import InputError
from vitehub_chat.model.clock import read_time
from vitehub_chat.web.access import Access
from vitehub_chat.web.principals import Principal
from vitehub_chat.web.problems import json_response
from vitehub_chat.web.reading import read_query
from vitehub_chat.web.wire import SearchQuery, read_model


class SearchRoutes:
    """The route that searches; it sees the conversations of who calls, and no others."""

    def __init__(self, agent: Agent, access: Access) -> None:
        self._agent = agent
        self._access = access

    async def search(self, request: Request) -> Response:
        """Return messages in which all words occur, of all conversations of who calls or of one."""
        principal = await self._access.principal(request)
        query = read_model(SearchQuery, read_query(request))
        return json_response({"items": await self._find(request, principal, query)})

    async def _find(
        self, request: Request, principal: Principal, query: SearchQuery
    ) -> list[dict[str, object]]:
        conversation, session_id = None, None
        if query.id is not None or query.session_id is not None:
            found = await self._access.find(request, principal, query.id, query.session_id)
            conversation = found.conversation.key
            session_id = found.conversation.session_id
        conversations = self._agent.conversations(
            tenant=principal.tenant_id, user_key=principal.user_id
        )
        page = await conversations.search(
            query.q,
            limit=query.limit,
            role=query.role,
            before=_time(query.before, "before"),
            after=_time(query.after, "after"),
            session_id=session_id,
            conversation=conversation,
        )
        return [hit_to_json(hit) for hit in page.items]


def _time(value: str | None, path: str) -> datetime | None:
    if value is None:
        return None
    time = read_time(value)
    if time is None:
        raise InputError("must be a time in ISO 8601", path=path)
    return time
