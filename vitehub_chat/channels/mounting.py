"""Mounting: the channels of an agent as routes of a Starlette or FastAPI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from vitehub_chat.agent.agent import Agent
from vitehub_chat.channels.host import ChannelHost
from vitehub_chat.channels.responses import refuse
from vitehub_chat.channels.values import ChannelRequest, ChannelResponse
from vitehub_chat.errors import MissingDependencyError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MAX_BODY_BYTES = 4 * 1024 * 1024
GRACE_MS = 10_000


class MountedChannels:
    """The routes of an agent's channels in one application.

    The state opens, and the queues are swept, from the first request on, or from `lifespan`.

    Attributes:
        host: What takes the requests.
    """

    def __init__(self, host: ChannelHost, agent: Agent) -> None:
        self.host = host
        self._agent = agent

    @asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncIterator[None]:  # noqa: ARG002 - Starlette's
        """Open the agent and answer what waits; at the end wait for turns and close the agent.

        It is the `lifespan` of an application, or can be entered within another one.
        """
        async with self._agent, self.host:
            yield

    async def aclose(self) -> None:
        """Take no more requests and wait for turns and answers, see `ChannelHost.aclose`."""
        await self.host.aclose()


def mount_channels(
    app: Any,
    agent: Agent,
    path: str = "/channels",
    *,
    max_body_bytes: int = MAX_BODY_BYTES,
    shutdown_grace_ms: int = GRACE_MS,
) -> MountedChannels:
    """Add `POST {path}/{kind}` for every channel of an agent to an application.

    Args:
        app: A Starlette or FastAPI application.
        agent: The agent; its definition lists the channels.
        path: Where the routes begin.
        max_body_bytes: The largest body that is read; a larger one is answered 413.
        shutdown_grace_ms: How long turns may take to end by themselves, in milliseconds.

    Raises:
        ConfigError: The agent lists no channel, two of one kind, or something that is none.
        MissingDependencyError: Without the extra `web`.
    """
    try:
        from starlette.routing import Route  # noqa: PLC0415 - the extra may be missing
    except ImportError as error:
        raise MissingDependencyError("mount_channels()", extra="web") from error
    host = ChannelHost(agent, shutdown_grace=timedelta(milliseconds=shutdown_grace_ms))
    for kind, channel in host.channels.items():
        for below in channel.paths():
            route = f"{path.rstrip('/')}/{kind}{below}"
            endpoint = _Endpoint(host, kind, below, max_body_bytes)
            app.router.routes.append(Route(route, endpoint.answer, methods=["POST"]))
    return MountedChannels(host, agent)


class _Endpoint:
    """One path of one channel."""

    def __init__(self, host: ChannelHost, kind: str, below: str, max_body_bytes: int) -> None:
        self._host = host
        self._kind = kind
        self._below = below
        self._max_body_bytes = max_body_bytes

    async def answer(self, request: Request) -> Response:
        body = await self._read(request)
        if body is None:
            return _as_response(refuse(413, "body_too_large"))
        given = ChannelRequest(
            method=request.method,
            path=self._below,
            headers=dict(request.headers),
            query=request.url.query,
            body=body,
        )
        return _as_response(await self._host.handle(self._kind, given))

    async def _read(self, request: Request) -> bytes | None:
        """Return the body, or None if it is too large; no more of it is read then."""
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > self._max_body_bytes:
                return None
        return bytes(body)


def _as_response(answer: ChannelResponse) -> Response:
    from starlette.responses import Response  # noqa: PLC0415 - loaded with the routes

    return Response(answer.body, status_code=answer.status, headers=dict(answer.headers))
