"""Mounting: the routes of an agent in an application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Unpack
from weakref import WeakKeyDictionary, WeakSet

from vitehub_chat.agent.agent import Agent
from vitehub_chat.conversation.sweeping import Sweeper
from vitehub_chat.errors import ConfigError, MissingDependencyError, StateClosedError
from vitehub_chat.web.principals import Authenticate, ResolveSession
from vitehub_chat.web.settings import ChatRouteOptions, read_settings

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from vitehub_chat.web.runs import RunRegistry

PATH: Final = "/api/chat"


class MountedChat:
    """The routes of one agent in one application.

    The state opens, and what dead processes left waiting is run, from the first request on, or
    from `lifespan`.
    """

    def __init__(self, agent: Agent, runs: RunRegistry, grace: timedelta) -> None:
        self._agent = agent
        self._runs = runs
        self._grace = grace
        self._sweepers = WeakKeyDictionary[asyncio.AbstractEventLoop, Sweeper]()
        self._closed = WeakSet[asyncio.AbstractEventLoop]()

    @asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncIterator[None]:  # noqa: ARG002 - Starlette's
        """Open the agent and run what waits; at the end wait for turns and close the agent.

        It is the `lifespan` of an application, or can be entered within another one.
        """
        self._closed.discard(asyncio.get_running_loop())
        async with self._agent:
            await self.begin()
            try:
                yield
            finally:
                await self.aclose()

    async def begin(self) -> None:
        """Begin to sweep in this event loop; no-op while it does.

        Raises:
            StateClosedError: The routes were closed here.
        """
        loop = asyncio.get_running_loop()
        if loop in self._closed:
            raise StateClosedError("the service is shutting down")
        if loop not in self._sweepers:
            sweeper = self._sweepers[loop] = self._agent.sweeping()
            await sweeper.__aenter__()

    async def aclose(self) -> None:
        """Take no more requests in this event loop, and wait for the turns.

        Those that take longer than the grace are recorded as interrupted. The agent stays open.
        Repeating does nothing; `lifespan` begins anew.
        """
        loop = asyncio.get_running_loop()
        self._closed.add(loop)
        sweeper = self._sweepers.pop(loop, None)
        if sweeper is not None:
            await sweeper.__aexit__()
        give_up_at = loop.time() + self._grace.total_seconds()
        await self._runs.settle(self._grace)
        left = max(give_up_at - loop.time(), 0)
        await self._agent.runtime().settle(timedelta(seconds=left))


def mount_chat(
    app: Any,
    agent: Agent,
    path: str = PATH,
    *,
    authenticate: Authenticate,
    resolve_session: ResolveSession,
    **options: Unpack[ChatRouteOptions],
) -> MountedChat:
    """Add the routes of an agent to an application.

    They are exact routes of the application, so that its middleware and its lifespan hold.

    Args:
        app: A Starlette or FastAPI application.
        agent: The agent.
        path: Where the routes begin.
        authenticate: Takes the request and returns a `Principal`, or None for nobody. Runs before
            anything else of a request is read.
        resolve_session: Takes the request, the principal and the client's name of a conversation,
            and returns a `SessionRef`, or None if they may not see it; `per_user_sessions` gives
            each user a namespace.
        options: See `ChatRouteOptions`.

    Raises:
        ConfigError: An option is wrong.
        MissingDependencyError: Without the extra `web`.
    """
    settings = read_settings(options)
    for name, function in (("authenticate", authenticate), ("resolve_session", resolve_session)):
        if not callable(function):
            raise ConfigError("must be a callable", path=name, hint="there is no default")
    try:
        from starlette.routing import Route  # noqa: PLC0415 - the extra may be missing
    except ImportError as error:
        raise MissingDependencyError("mount_chat()", extra="web") from error
    from vitehub_chat.web.access import Access  # noqa: PLC0415 - needs Starlette
    from vitehub_chat.web.routes import find_endpoints, guard  # noqa: PLC0415
    from vitehub_chat.web.runs import RunRegistry  # noqa: PLC0415

    runs = RunRegistry()
    mounted = MountedChat(agent, runs, timedelta(milliseconds=settings.shutdown_grace_ms))
    base = path.rstrip("/")
    access = Access(agent, authenticate, resolve_session)
    for below, methods in find_endpoints(agent, access, settings, runs, base).items():
        for method, endpoint in methods.items():
            answer = guard(endpoint, mounted.begin)
            app.router.routes.append(Route(f"{base}{below}" or "/", answer, methods=[method]))
    return mounted


def chat_app(
    agent: Agent,
    path: str = PATH,
    *,
    authenticate: Authenticate,
    resolve_session: ResolveSession,
    **options: Unpack[ChatRouteOptions],
) -> Starlette:
    """Return the routes of an agent as an ASGI application of their own, see `mount_chat`.

    Raises:
        ConfigError: An option is wrong.
        MissingDependencyError: Without the extra `web`.
    """
    try:
        from starlette.applications import Starlette  # noqa: PLC0415 - the extra may be missing
    except ImportError as error:
        raise MissingDependencyError("chat_app()", extra="web") from error

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with mounted.lifespan(app):
            yield

    app = Starlette(lifespan=lifespan)
    mounted = mount_chat(
        app, agent, path, authenticate=authenticate, resolve_session=resolve_session, **options
    )
    return app
