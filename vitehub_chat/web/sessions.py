"""Session routes: the conversations of who calls."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from vitehub_chat.agent.agent import Agent
from vitehub_chat.conversation.as_json import session_to_json, without_none
from vitehub_chat.conversation.summaries import describe_session
from vitehub_chat.errors import InputError, NotFoundError
from vitehub_chat.model.clock import read_time
from vitehub_chat.state.steps.inventory import STORES
from vitehub_chat.web.access import Access, Place
from vitehub_chat.web.answers import summary_facts_to_json
from vitehub_chat.web.principals import Principal
from vitehub_chat.web.problems import json_response
from vitehub_chat.web.reading import read_query
from vitehub_chat.web.wire import PlaceQuery, SessionsQuery, read_model


class SessionRoutes:
    """The routes that list, show and delete conversations."""

    def __init__(self, agent: Agent, access: Access) -> None:
        self._agent = agent
        self._access = access

    async def list(self, request: Request) -> Response:
        """Return the conversations of who calls, the newest activity first."""
        principal = await self._access.principal(request)
        query = read_model(SessionsQuery, read_query(request))
        since = None
        if query.updated_since is not None:
            since = read_time(query.updated_since)
            if since is None:
                raise InputError("must be a time in ISO 8601", path="updated_since")
        conversations = self._agent.conversations(
            tenant=principal.tenant_id, user_key=principal.user_id
        )
        page = await conversations.sessions(
            limit=query.limit, cursor=query.cursor, updated_since=since
        )
        items = [session_to_json(info) for info in page.items]
        return json_response(without_none(items=items, next_cursor=page.next_cursor))

    async def get(self, request: Request) -> Response:
        """Return one conversation with facts about its summaries and its budget."""
        principal = await self._access.principal(request)
        query = read_model(PlaceQuery, read_query(request))
        chat_id = request.path_params["id"]
        found = await self._access.find(request, principal, chat_id, query.session_id)
        told = await describe_session(
            await self._agent.open_state(), found.info, session_id=found.conversation.session_id
        )
        page = await found.conversation.history(limit=1)
        budget = told.context_budget
        return json_response(
            {
                **session_to_json(told),
                "generation": page.generation,
                "summary": summary_facts_to_json(told.rolling, told.manual),
                **without_none(context_budget=None if budget is None else budget.to_json()),
            }
        )

    async def delete(self, request: Request) -> Response:
        """Erase a conversation, and return counts per store; zeros when repeated."""
        principal = await self._access.principal(request)
        query = read_model(PlaceQuery, read_query(request))
        chat_id = request.path_params["id"]
        place = await self._access.locate(request, principal, chat_id, query.session_id)
        return json_response(await self._erase(principal, place))

    async def _erase(self, principal: Principal, place: Place) -> Mapping[str, int]:
        try:
            found = await self._access.open(principal, place)
        except NotFoundError:
            return dict.fromkeys(STORES, 0)
        return await found.conversation.clear(delete_session=True)
