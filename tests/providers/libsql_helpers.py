"""What the tests of the libSQL provider share: drivers, and servers that misbehave."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import attrs
from aiohttp import web

from vitehub_chat.state.options import AuthToken
from vitehub_chat.state.providers.libsql.address import parse_address
from vitehub_chat.state.providers.libsql.driver import LibsqlDriver
from vitehub_chat.state.providers.libsql.limits import Limits
from vitehub_chat.state.providers.libsql.tokens import TokenSource

Answer = Callable[["Received"], Awaitable[web.StreamResponse | None]]
"""What a server on the loopback answers; None drops the connection."""

QUICK = Limits(connect=2.0, request=5.0, retry=0.0)
"""Limits without any retry."""


def make_driver(
    url: str, *, token: AuthToken | None = None, limits: Limits | None = None
) -> LibsqlDriver:
    return LibsqlDriver(parse_address(url), tokens=TokenSource(token), limits=limits)


@asynccontextmanager
async def driving(
    url: str, *, token: AuthToken | None = None, limits: Limits | None = None
) -> AsyncIterator[LibsqlDriver]:
    """Give a driver that is closed at the end."""
    driver = make_driver(url, token=token, limits=limits)
    try:
        yield driver
    finally:
        await driver.aclose()


@attrs.frozen
class Received:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def parts(self) -> list[dict[str, Any]]:
        """What it asks for, without the end."""
        requests: list[dict[str, Any]] = json.loads(self.body)["requests"]
        return requests[:-1]

    @property
    def writes(self) -> bool:
        """Whether it inserts something, or begins a transaction that writes."""
        return b"INSERT" in self.body or b"BEGIN IMMEDIATE" in self.body


class Loopback:
    """A server on the loopback that answers as a function says, and remembers what came.

    Attributes:
        received: The requests, in order.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.received: list[Received] = []
        self.url = ""

    async def __aenter__(self) -> Loopback:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        received = Received(request.path, headers, await request.read())
        self.received.append(received)
        answer = await self._answer(received)
        if answer is None:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return answer


def forward_to(url: str) -> Answer:
    """Return what answers as the server at a URL does."""

    async def answer(received: Received) -> web.StreamResponse:
        async with (
            aiohttp.ClientSession() as session,
            session.post(url + received.path, data=io.BytesIO(received.body)) as response,
        ):
            return web.Response(
                status=response.status, body=await response.read(), content_type="application/json"
            )

    return answer


def in_turn(*answers: Answer) -> Answer:
    """Return what answers with one after the other, and with the last of them from then on."""
    left = list(answers)

    async def answer(received: Received) -> web.StreamResponse | None:
        return await (left.pop(0) if len(left) > 1 else left[0])(received)

    return answer


def say(status: int, text: str = "", headers: dict[str, str] | None = None) -> Answer:
    """Return what always answers the same."""

    async def answer(_received: Received) -> web.StreamResponse:
        return web.Response(status=status, text=text, headers=headers)

    return answer


async def drop(_received: Received) -> None:
    """Drop the connection."""


def say_rows(*rows: list[Any], index: str | None = None) -> Answer:
    """Return what answers every part with rows of texts."""

    async def answer(received: Received) -> web.StreamResponse:
        cells = [[{"type": "text", "value": value} for value in row] for row in rows]
        result = {"cols": [], "rows": cells, "replication_index": index}
        response = {"type": "execute", "result": result}
        results = [{"type": "ok", "response": response} for _ in received.parts]
        return web.json_response({"baton": None, "results": results})

    return answer


def say_error(code: str, message: str = "") -> Answer:
    """Return what answers every part with an error."""

    async def answer(received: Received) -> web.StreamResponse:
        error = {"code": code, "message": message}
        return web.json_response(
            {"baton": None, "results": [{"type": "error", "error": error}] * len(received.parts)}
        )

    return answer
