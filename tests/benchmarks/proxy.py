"""A proxy between a client and a server: it counts exchanges, and makes the way longer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    """A TCP proxy on the loopback; what is sent to the server arrives later by a delay.

    Attributes:
        port: Where it listens.
        exchanges: How often a client sent something after the last answer, on any connection.
    """

    def __init__(self, host: str, port: int, *, delay: float = 0.0) -> None:
        """Make a proxy for a server; `delay` is in seconds, per exchange."""
        self._host, self._server_port = host, port
        self._delay = delay
        self.port = 0
        self.exchanges = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Proxy]:
        """Serve as long as this lasts."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Requests(self), "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def connect(self, answers: asyncio.Protocol) -> asyncio.Transport:
        """Connect to the server."""
        loop = asyncio.get_running_loop()
        connected = await loop.create_connection(lambda: answers, self._host, self._server_port)
        return connected[0]

    def send(self, data: bytes, server: asyncio.Transport) -> None:
        """Send something to the server, after the delay."""
        if self._delay:
            asyncio.get_running_loop().call_later(self._delay, server.write, data)
        else:
            server.write(data)


class _Requests(asyncio.Protocol):
    """What comes from a client."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._server: asyncio.Transport | None = None
        self._early: deque[bytes] = deque()
        self._is_answered = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._connecting = asyncio.ensure_future(self._connect(_Answers(self, transport)))

    def data_received(self, data: bytes) -> None:
        self._proxy.exchanges += self._is_answered
        self._is_answered = False
        if self._server is None:
            self._early.append(data)
        else:
            self._proxy.send(data, self._server)

    def connection_lost(self, _error: Exception | None) -> None:
        if self._server is not None:
            self._server.close()

    def answered(self) -> None:
        """Note that the server has answered."""
        self._is_answered = True

    async def _connect(self, answers: asyncio.Protocol) -> None:
        self._server = await self._proxy.connect(answers)
        while self._early:
            self._proxy.send(self._early.popleft(), self._server)


class _Answers(asyncio.Protocol):
    """What comes from the server."""

    def __init__(self, requests: _Requests, client: asyncio.Transport) -> None:
        self._requests = requests
        self._client = client

    def data_received(self, data: bytes) -> None:
        self._requests.answered()
        self._client.write(data)

    def connection_lost(self, _error: Exception | None) -> None:
        self._client.close()
