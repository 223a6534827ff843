"""A desk: a console on a real server of its own, with conversations to look at."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import uvicorn

from tests.conversation.station import LIMIT_S
from vitehub_chat import Agent, ConversationKey, chat, define_agent, run_agent_trigger
from vitehub_chat.model.clock import Clock, SystemClock
from vitehub_chat.model.ids import new_token
from vitehub_chat.web.console.links import Door
from vitehub_chat.web.console.local import LocalSite, local_app

T = TypeVar("T")

WINDOW = {"source": "transcript", "max_messages": 4}


def text(message_id: str, what: str, role: str = "user", **facts: Any) -> dict[str, Any]:
    """Return a message with one text."""
    parts = [{"type": "text", "text": what}]
    return {"id": message_id, "role": role, "parts": parts, **facts}


class Desk:
    """A console in a thread of its own; `with` serves it.

    Attributes:
        agent: Whose conversations are shown.
        address: Where it is.
        door: What lets browsers in.
    """

    def __init__(
        self,
        url: str,
        *,
        secret: str | None = None,
        clock: Clock | None = None,
        driver: Any = "echo",
        options: Mapping[str, Any] | None = None,
        **facts: Any,
    ) -> None:
        self.agent: Agent = define_agent(
            name="support",
            driver=driver,
            state=url,
            capabilities=[chat(**{"trigger_history": WINDOW, **(options or {})})],
        )
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()  # whoever connects before the server is up waits for it
        port = self._socket.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.door = Door(port, secret, clock=clock or SystemClock(), new_token=new_token)
        self.link = self.door.link(self.address)
        hosts = [f"127.0.0.1:{port}", "desk.example"]
        site = LocalSite(agent=self.agent, door=self.door, hosts=hosts, **facts)
        self._server = uvicorn.Server(
            uvicorn.Config(
                local_app(site),
                interface="asgi3",
                log_config=None,
                loop="none",
                timeout_graceful_shutdown=5,
            )
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._server.serve(sockets=[self._socket]))
        self._loop.close()

    def __enter__(self) -> Self:
        self.agent.runtime()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.should_exit = True
        self._thread.join(LIMIT_S)
        self._socket.close()
        assert not self._thread.is_alive()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the event loop of the server."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT_S)

    def store(
        self,
        messages: Sequence[Mapping[str, Any]],
        thread: str = "t1",
        channel: str | None = "portal",
        session_id: str | None = None,
        tenant: str | None = None,
    ) -> None:
        """Store messages without a turn."""
        key = ConversationKey(tenant, "support", channel, thread)
        self.call(self._append(key, messages, session_id))

    async def _append(
        self, key: ConversationKey, messages: Sequence[Mapping[str, Any]], session_id: str | None
    ) -> None:
        conversation = self.agent.conversation(key, session_id=session_id)
        for first in range(0, len(messages), 500):
            await conversation.append(messages[first : first + 500])

    def cut(self, message_id: str, thread: str = "t1") -> None:
        """Cut a conversation off from a message on."""
        key = ConversationKey(None, "support", "portal", thread)
        self.call(self.agent.conversation(key).truncate(message_id))

    def delete(self, message_id: str, thread: str = "t1") -> None:
        """Delete one message."""
        key = ConversationKey(None, "support", "portal", thread)
        self.call(self.agent.conversation(key).delete_message(message_id))

    def soon(self, act: Callable[[], None]) -> None:
        """Do something in the event loop of the server, without waiting for it."""
        self._loop.call_soon_threadsafe(act)

    def turn(self, message: Mapping[str, Any], thread: str = "t1") -> None:
        """Have a message answered."""
        self.converse([message], thread)

    def converse(self, messages: Sequence[Mapping[str, Any]], thread: str = "t1") -> None:
        """Have the last one of some messages answered."""
        run = {"channel_id": "portal", "thread_id": thread}
        given = {"messages": messages, "run": run}
        self.call(run_agent_trigger(self.agent, "chat.message", given))
