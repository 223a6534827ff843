"""Routes: every path of the console with what answers it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import attrs
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vitehub_chat.agent.agent import Agent
from vitehub_chat.conversation.as_json import hit_to_json, session_to_json, without_none
from vitehub_chat.conversation.reasons import REASONS
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.hits import SearchHit
from vitehub_chat.model.rows import SessionInfo
from vitehub_chat.model.snippets import MARK
from vitehub_chat.web.console.files import DOOR, MEDIA_TYPES, PAGES, load_files, respond
from vitehub_chat.web.console.operating import OperatorAccess
from vitehub_chat.web.problems import json_response, refuse
from vitehub_chat.web.reading import read_query
from vitehub_chat.web.routes import Endpoint, find_endpoints
from vitehub_chat.web.runs import RunRegistry
from vitehub_chat.web.settings import RouteSettings
from vitehub_chat.web.wire import SearchQuery, SessionsQuery, read_model

API = "/api"
_READ = (
    "/history",
    "/history/turns",
    "/history/window",
    "/history/summary",
    "/history/export",
    "/sessions/{id:path}",
)
_METHODS = frozenset({"GET", "DELETE"})


@attrs.frozen(kw_only=True)
class ChatBox:
    """Where the console sends what is typed into it.

    Attributes:
        path: Where the routes of the agent begin.
        channel: The channel of the conversations that can be gone on with there.
    """

    path: str
    channel: str


class ConsoleRoute(NamedTuple):
    """One path below the console, a method, and what answers."""

    path: str
    method: str
    endpoint: Endpoint


class ConsoleRoutes:
    """The pages of the console, and what they read.

    Args:
        agent: The agent.
        access: Who may look, and at what.
        chat: Where to talk to the agent, or None.
    """

    def __init__(self, agent: Agent, access: OperatorAccess, chat: ChatBox | None = None) -> None:
        self._agent = agent
        self._access = access
        self._chat = chat
        self._files = load_files()

    def __iter__(self) -> Iterator[ConsoleRoute]:
        """Yield every route, the exact paths first."""
        for name in ("", *MEDIA_TYPES):
            if name not in DOOR and name not in PAGES.values():
                yield ConsoleRoute(f"/{name}", "GET", self.file)
        yield ConsoleRoute(f"{API}/about", "GET", self.about)
        yield ConsoleRoute(f"{API}/sessions", "GET", self.sessions)
        yield ConsoleRoute(f"{API}/history/search", "GET", self.search)
        found = find_endpoints(self._agent, self._access, RouteSettings(), RunRegistry())
        for path in _READ:
            for method, endpoint in found[path].items():
                if method in _METHODS:
                    yield ConsoleRoute(f"{API}{path}", method, endpoint)

    async def file(self, request: Request) -> Response:
        """Return a page, a script or the style."""
        await self._access.principal(request)
        name = request.scope["path"].rpartition("/")[2]
        return respond(self._files, PAGES.get(name, name))

    async def about(self, request: Request) -> Response:
        """Return what the console is about: the agent, where to talk to it, and the reasons."""
        principal = await self._access.principal(request)
        chat = None if self._chat is None else attrs.asdict(self._chat)
        return json_response(
            {
                "agent": self._agent.name,
                **without_none(tenant=principal.tenant_id),
                "chat": chat,
                "reasons": dict(REASONS),
            }
        )

    async def sessions(self, request: Request) -> Response:
        """Return everybody's conversations, the newest activity first."""
        principal = await self._access.principal(request)
        query = read_model(SessionsQuery, read_query(request))
        page = await self._access.conversations(principal).sessions(
            limit=query.limit, cursor=query.cursor
        )
        items = [operator_session(info) for info in page.items]
        return json_response(without_none(items=items, next_cursor=page.next_cursor))

    async def search(self, request: Request) -> Response:
        """Return messages of everybody in which all words occur."""
        principal = await self._access.principal(request)
        query = read_model(SearchQuery, read_query(request))
        try:
            page = await self._access.conversations(principal).search(query.q, limit=query.limit)
        except ConfigError as error:
            if error.path != "state.search":
                raise
            raise refuse(501, "not_available", "This state cannot be searched.") from None
        return json_response({"items": [operator_hit(hit) for hit in page.items]})

    async def redirect(self, request: Request) -> Response:
        """Lead from the path without a slash at its end to the page."""
        await self._access.principal(request)
        return RedirectResponse(f"{request.scope['path']}/")


def operator_hit(hit: SearchHit) -> Mapping[str, Any]:
    """Return what a search found as the console shows it: by its key, its matches apart."""
    pieces = hit.pieces or hit.snippet.split(MARK)
    return {**hit_to_json(hit), "id": hit.conversation.encode(), "pieces": pieces}


def operator_session(info: SessionInfo) -> Mapping[str, Any]:
    """Return one session as the console lists it: by its key, with its place and its owner."""
    key = info.conversation
    return {
        **session_to_json(info),
        "id": key.encode(),
        **without_none(channel=key.channel, thread=key.thread, owner=info.user_key),
    }
