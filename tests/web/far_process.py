"""A process that serves an agent on a free port: it prints the port, and `go` lets answers end."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import uvicorn

from vitehub_chat import chat, define_agent
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.web import Principal, chat_app, per_user_sessions


class Server(uvicorn.Server):
    """Prints its port once it listens."""

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and tell where."""
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)


async def serve(url: str) -> None:
    """Serve until the input ends."""
    may_end, loop = asyncio.Event(), asyncio.get_running_loop()

    async def answer(call: DriverCall) -> AsyncIterator[str]:
        yield f"{call.text} begins, "
        await may_end.wait()
        yield "and ends."

    window: Any = {"source": "transcript", "max_messages": 9}
    agent = define_agent(
        name="site", driver=answer, capabilities=[chat(trigger_history=window)], state=url
    )
    app = chat_app(
        agent,
        authenticate=lambda _: Principal("acme", "ada"),
        resolve_session=per_user_sessions,
        replay="state",
    )
    server = Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None))

    def listen() -> None:
        for _ in sys.stdin:
            loop.call_soon_threadsafe(may_end.set)
        server.should_exit = True

    threading.Thread(target=listen, daemon=True).start()
    await server.serve()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
