"""Local: the console, and the routes of an agent, as an application of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import attrs
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vitehub_chat.agent.agent import Agent
from vitehub_chat.errors import InputError
from vitehub_chat.web.console.files import FOR_STRANGERS, load_files, respond
from vitehub_chat.web.console.guarding import Guard
from vitehub_chat.web.console.links import Door
from vitehub_chat.web.console.mounting import add_routes
from vitehub_chat.web.console.operating import OperatorAccess
from vitehub_chat.web.console.routes import ChatBox, ConsoleRoutes
from vitehub_chat.web.mounting import PATH, mount_chat
from vitehub_chat.web.principals import Principal, per_user_sessions
from vitehub_chat.web.problems import Problem, json_response, refuse
from vitehub_chat.web.reading import read_body
from vitehub_chat.web.routes import guard

USER: Final = "local"
"""Who talks to an agent in the console."""

_MAX_BODY = 4096
_STRANGER: Final = Problem(
    status=401,
    code="unauthenticated",
    message="Open the link that the command printed. It works once; start the command again for"
    " another one.",
)


@attrs.frozen(kw_only=True)
class LocalSite:
    """What `local_app` serves.

    Attributes:
        agent: The agent.
        door: Who gets in.
        hosts: The names under which it may be asked, with their ports.
        tenant: Whose conversations are shown; None is the tenant without name.
        talks: Whether the agent can be talked to.
    """

    agent: Agent
    door: Door
    hosts: Sequence[str]
    tenant: str | None = None
    talks: bool = True

    def authenticate(self, request: Request) -> Principal | None:
        """Return who looks, if they got in."""
        return Principal(self.tenant, USER) if self.door.knows(request) else None

    def admit(self, request: Request) -> Problem | None:
        """Return why a request may not go on, or None."""
        name = request.scope["path"].removeprefix("/")
        if name == "open" or name in FOR_STRANGERS or self.door.knows(request):
            return None
        return _STRANGER

    def chat_box(self) -> ChatBox | None:
        """Return where the console talks to the agent."""
        if not self.talks:
            return None
        place = per_user_sessions(None, Principal(self.tenant, USER), "chat").key
        return ChatBox(path=PATH, channel=place.channel or "")


def local_app(site: LocalSite) -> Guard:
    """Return the console at `/`, the routes of the agent at `/api/chat`, and the door at `/open`.

    Every answer has the headers of the console, and without its cookie everything but the door is
    401.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if mounted is None:
            yield
            return
        async with mounted.lifespan(app):
            yield

    app = Starlette(lifespan=lifespan)
    app.router.redirect_slashes = False
    mounted = None
    if site.talks:
        mounted = mount_chat(
            app,
            site.agent,
            authenticate=site.authenticate,
            resolve_session=per_user_sessions,
        )
    access = OperatorAccess(site.agent, site.authenticate)
    _add_door(app, site.door)
    add_routes(app, ConsoleRoutes(site.agent, access, site.chat_box()), "")
    return Guard(app, site.hosts, site.admit)


def _add_door(app: Starlette, door: Door) -> None:
    files = load_files()

    async def page(request: Request) -> Response:
        name = request.scope["path"].removeprefix("/")
        return respond(files, "open.html" if name == "open" else name)

    async def enter(request: Request) -> Response:
        token = (await read_body(request, _MAX_BODY)).get("token")
        if not isinstance(token, str):
            raise InputError("must be text", path="token")
        value = door.exchange(token)
        if value is None:
            raise refuse(403, "forbidden", "This link was used already, is too old, or is wrong.")
        answer = json_response({"open": True})
        answer.set_cookie(door.cookie_name, value, httponly=True, samesite="strict", path="/")
        return answer

    async def begin() -> None:
        """Begin: there is nothing to open."""

    for path in ("/open", *(f"/{name}" for name in FOR_STRANGERS if not name.endswith(".html"))):
        app.router.routes.append(Route(path, guard(page, begin), methods=["GET"]))
    app.router.routes.append(Route("/open", guard(enter, begin), methods=["POST"]))
