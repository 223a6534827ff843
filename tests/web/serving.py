"""Serving: an application on a free port of loopback, from a thread of its own or in a loop."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn

LIMIT_S = 20


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an application and give its address."""
    listens = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            listens.set()

    server = Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert listens.wait(LIMIT_S)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(LIMIT_S)


@asynccontextmanager
async def running(app: Any, sockets: list[socket.socket] | None = None) -> AsyncIterator[Any]:
    """Serve an application in this event loop and give its server."""
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        log_config=None,
        lifespan="off",
        loop="none",
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets)
    main_loop = asyncio.create_task(server.main_loop())
    try:
        yield server
    finally:
        server.should_exit = True
        await main_loop
        await server.shutdown(sockets)


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """Serve an application in this event loop and give its address."""
    async with running(app) as server:
        (opened,) = server.servers[0].sockets
        host, port = opened.getsockname()[:2]
        yield f"http://{host}:{port}"
