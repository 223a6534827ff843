"""What the tests of the libSQL provider share: drivers, and servers that misbehave."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
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


class Relay:
    """Passes bytes on to a port of the loopback, and drops all connections on demand.

    Attributes:
        accepted: How many connections there were.
        url: Where it is.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: set[asyncio.StreamWriter] = set()
        self.accepted = 0
        self.url = ""

    async def __aenter__(self) -> Relay:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._server.close()
        await self.drop()

    async def drop(self) -> None:
        """Close all connections and wait until they are."""
        connections, self._open = self._open, set()
        for each in connections:
            each.close()
        await asyncio.gather(*(each.wait_closed() for each in connections), return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        upstream = await asyncio.open_connection("127.0.0.1", self._port)
        self._open |= {writer, upstream[1]}
        await asyncio.gather(_pump(reader, upstream[1]), _pump(upstream[0], writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
    writer.close()


def forward_to(url: str, *, base: str = "") -> Answer:
    """Return what answers as the server at a URL does, without the base path of a request."""

    async def answer(received: Received) -> web.StreamResponse:
        shown = {"authorization": received.headers.get("authorization", "")}
        path = received.path.removeprefix(base)
        async with (
            aiohttp.ClientSession(headers=shown) as session,
            session.post(url + path, data=io.BytesIO(received.body)) as response,
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
