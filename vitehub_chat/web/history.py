"""History routes: what is stored of a conversation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Final

import attrs
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.triggers import prepare_agent_trigger
from vitehub_chat.conversation.as_json import page_to_json, without_none
from vitehub_chat.errors import InputError
from vitehub_chat.web.access import Access, Found, Place
from vitehub_chat.web.answers import (
    next_to_json,
    plan_to_json,
    summaries_to_json,
    turn_to_json,
)
from vitehub_chat.web.inputs import InputBuilder, Sent
from vitehub_chat.web.principals import Principal
from vitehub_chat.web.problems import json_response
from vitehub_chat.web.reading import read_body, read_query
from vitehub_chat.web.wire import (
    PageQuery,
    PlaceQuery,
    SummaryBody,
    TruncateBody,
    TurnsQuery,
    WindowQuery,
    read_model,
)

TRIGGER: Final = "chat.message"
NEXT_MESSAGE: Final[Mapping[str, Any]] = {
    "role": "user",
    "parts": [{"type": "text", "text": "(the next message)"}],
}
"""Stands for a message that nobody has sent yet."""

EXPORT_HEADERS = {
    "content-disposition": 'attachment; filename="conversation.ndjson"',
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
}


class HistoryRoutes:
    """The routes that read and cut what is stored of one conversation."""

    def __init__(
        self, agent: Agent, access: Access, inputs: InputBuilder, max_body_bytes: int
    ) -> None:
        self._agent = agent
        self._access = access
        self._inputs = inputs
        self._max_body_bytes = max_body_bytes

    async def page(self, request: Request) -> Response:
        """Return a page of messages."""
        principal = await self._access.principal(request)
        query = read_model(PageQuery, read_query(request))
        found = await self._access.find(request, principal, query.id, query.session_id)
        page = await found.conversation.history(
            limit=query.limit,
            cursor=query.cursor,
            direction=query.direction,
            around=query.around,
        )
        return json_response(page_to_json(page))

    async def turns(self, request: Request) -> Response:
        """Return one light row per message of a user."""
        principal = await self._access.principal(request)
        query = read_model(TurnsQuery, read_query(request))
        found = await self._access.find(request, principal, query.id, query.session_id)
        page = await found.conversation.turns(limit=query.limit, cursor=query.cursor)
        items = [turn_to_json(item) for item in page.items]
        return json_response(without_none(items=items, next_cursor=page.next_cursor))

    async def window(self, request: Request) -> Response:
        """Return what the model was given in a turn, or would be given for the next message."""
        principal = await self._access.principal(request)
        query = read_model(WindowQuery, read_query(request))
        place = await self._access.locate(request, principal, query.id, query.session_id)
        found = await self._access.open(principal, place)
        if query.next:
            if query.turn_id is not None:
                raise InputError("names a turn that is over, not the next one", path="turn_id")
            return json_response(await self._next(place, principal))
        plan = await found.conversation.plan(query.turn_id)
        return json_response({} if plan is None else plan_to_json(plan))

    async def _next(self, place: Place, principal: Principal) -> dict[str, Any]:
        """Return what the model would be given for a next message; a dry run."""
        given = await self._inputs.build(Sent(messages=[NEXT_MESSAGE]), place, principal)
        prepared = await prepare_agent_trigger(self._agent, TRIGGER, given)
        return next_to_json(prepared)

    async def summary(self, request: Request) -> Response:
        """Return the summaries of a conversation."""
        principal = await self._access.principal(request)
        query = read_model(PlaceQuery, read_query(request))
        found = await self._access.find(request, principal, query.id, query.session_id)
        return json_response(await _summaries(found))

    async def save_summary(self, request: Request) -> Response:
        """Save the manual summary."""
        principal = await self._access.principal(request)
        body = read_model(SummaryBody, await read_body(request, self._max_body_bytes))
        found = await self._access.find(request, principal, body.id, body.session_id)
        await found.conversation.save_summary(body.text)
        return json_response(await _summaries(found))

    async def export(self, request: Request) -> Response:
        """Return the whole conversation as lines of JSON."""
        principal = await self._access.principal(request)
        query = read_model(PlaceQuery, read_query(request))
        found = await self._access.find(request, principal, query.id, query.session_id)
        return StreamingResponse(
            _lines(found), media_type="application/x-ndjson", headers=EXPORT_HEADERS
        )

    async def truncate(self, request: Request) -> Response:
        """Cut a conversation off from a message on."""
        principal = await self._access.principal(request)
        body = read_model(TruncateBody, await read_body(request, self._max_body_bytes))
        found = await self._access.find(request, principal, body.id, body.session_id)
        done = await found.conversation.truncate(
            body.from_message_id,
            inclusive=body.inclusive,
            expected_generation=body.expected_generation,
            idempotency_key=body.idempotency_key,
        )
        return json_response(attrs.asdict(done))


async def _summaries(found: Found) -> dict[str, Any]:
    conversation = found.conversation
    return summaries_to_json(
        await conversation.get_summary("rolling"), await conversation.get_summary("manual")
    )


async def _lines(found: Found) -> AsyncIterator[str]:
    lines: Any = found.conversation.export()
    async with aclosing(lines):
        async for line in lines:
            yield line
