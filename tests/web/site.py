"""A site: an agent behind its routes, and clients that read, stall and hang up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request

import vitehub_chat.web.routes  # noqa: F401 - imported before an event loop runs
from tests.conversation.station import LIMIT_S, SteppedDriver
from vitehub_chat import Agent, chat, define_agent, open_agent_state
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import Row
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock
from vitehub_chat.web import MountedChat, Principal, mount_chat, per_user_sessions

API = "/api/chat"
WINDOW = {"source": "transcript", "max_messages": 50}


def who(request: Request) -> Principal | None:
    """Authenticate by a header; `banned` may do nothing."""
    user = request.headers.get("x-user")
    if user == "banned":
        raise PermissionError("banned users may do nothing")
    return None if user is None else Principal("acme", user)


def said(message_id: str, text: str, **facts: Any) -> dict[str, Any]:
    """Return a message of a user."""
    parts = [{"type": "text", "text": text}]
    return {"id": message_id, "role": "user", "parts": parts, **facts}


def turn(message_id: str = "m1", text: str = "Hello", chat_id: str = "c1") -> dict[str, Any]:
    """Return the body with which a client has a message answered."""
    return {"id": chat_id, "messages": [said(message_id, text)]}


class Following:
    """A response that is being read; reads no faster than it is told to.

    Attributes:
        headers: Of the response, once it has begun.
        status: Of the response, once it has begun.
    """

    def __init__(self, app: Any, scope: Mapping[str, Any], body: bytes, room: int) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._body = body
        self._is_sent = False
        self._gone = asyncio.Event()
        self._begun = asyncio.Event()
        self._queue = asyncio.Queue[bytes | None](maxsize=room)
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> Mapping[str, Any]:
        if not self._is_sent:
            self._is_sent = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, event: Mapping[str, Any]) -> None:
        if self._gone.is_set():
            raise OSError("the socket is gone")
        if event["type"] == "http.response.start":
            self.status = event["status"]
            self.headers = {name.decode(): value.decode() for name, value in event["headers"]}
            self._begun.set()
            return
        if event.get("body"):
            await self._queue.put(event["body"])
        if not event.get("more_body", False):
            await self._queue.put(None)

    async def begun(self) -> int:
        """Wait for the status."""
        async with asyncio.timeout(LIMIT_S):
            await self._begun.wait()
        return self.status

    async def frames(self) -> AsyncIterator[str]:
        """Yield the frames until the end."""
        async with asyncio.timeout(LIMIT_S):
            while (piece := await self._queue.get()) is not None:
                yield piece.decode()

    async def chunks(self) -> list[dict[str, Any]]:
        """Return the JSON of every frame until the end."""
        return [read_frame(frame) async for frame in self.frames() if is_chunk(frame)]

    async def until(self, kind: str) -> dict[str, Any]:
        """Read until a chunk of a type and return it."""
        async for frame in self.frames():
            if is_chunk(frame) and (chunk := read_frame(frame))["type"] == kind:
                return chunk
        raise AssertionError(f"no {kind} came")

    async def hang_up(self) -> None:
        """Close the socket and wait until the server has noticed."""
        self._gone.set()
        async with asyncio.timeout(LIMIT_S):
            await asyncio.wait({self.task})


def is_chunk(frame: str) -> bool:
    return frame.startswith("data: ") and not frame.startswith("data: [DONE]")


def read_frame(frame: str) -> dict[str, Any]:
    chunk: dict[str, Any] = json.loads(frame.removeprefix("data: "))
    return chunk


def read_stream(text: str) -> list[dict[str, Any]]:
    """Return the chunks of a whole stream."""
    return [read_frame(frame) for frame in text.split("\n\n") if is_chunk(frame)]


def text_of(chunks: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a stream."""
    return "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")


class Site:
    """An agent named `site` behind its routes.

    Attributes:
        driver: What answers; by default `D` after B is answered `D[B]`, at once.
    """

    def __init__(self, url: str | None, clock: FakeClock, **options: Any) -> None:
        self.clock = clock
        stops = options.pop("stops", False)
        self.driver: Any = options.pop("driver", None) or SteppedDriver(stops=stops)
        settings = {"trigger_history": WINDOW, **options.pop("chat", {})}
        self.agent: Agent = define_agent(
            name="site", driver=self.driver, capabilities=[chat(**settings)]
        )
        self.app = Starlette()
        allow = {"authenticate": who, "resolve_session": per_user_sessions}
        self.mounted: MountedChat = mount_chat(self.app, self.agent, **{**allow, **options})
        self.state: AgentState | None = None
        self._url = url
        self.http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=self.app), base_url="http://site"
        )

    async def open(self) -> None:
        """Open the state."""
        if self._url is not None:
            opened = open_agent_state(self._url, clock=self.clock)
            self.state = self.agent.state = await opened.__aenter__()

    async def close(self) -> None:
        """Close everything; repeating does nothing."""
        await self.http.aclose()
        await self.mounted.aclose()
        await self.agent.aclose()
        if self.state is not None:
            await self.state.aclose()

    async def send(
        self, method: str, path: str, body: Any = None, *, user: str | None = "ada", **more: Any
    ) -> httpx2.Response:
        """Send a request below the routes and return the whole response."""
        headers = {} if user is None else {"x-user": user}
        headers |= more.pop("headers", {})
        given: dict[str, Any] = {} if body is None else {"json": body}
        async with asyncio.timeout(LIMIT_S):
            return await self.http.request(method, API + path, headers=headers, **given, **more)

    async def post(self, body: Any, *, user: str | None = "ada", **more: Any) -> httpx2.Response:
        """Have a message answered and return the whole response."""
        return await self.send("POST", "", body, user=user, **more)

    async def get(self, path: str, *, user: str | None = "ada", **query: Any) -> httpx2.Response:
        """Read something."""
        return await self.send("GET", path, user=user, params=query)

    def follow(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: str = "ada",
        room: int = 0,
        http_version: str = "1.1",
    ) -> Following:
        """Send a request and read its response while it comes."""
        headers = [(b"x-user", user.encode()), (b"content-type", b"application/json")]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": http_version,
            "method": method,
            "path": API + path,
            "raw_path": (API + path).encode(),
            "query_string": b"",
            "headers": headers,
        }
        content = b"" if body is None else json.dumps(body).encode()
        return Following(self.app, scope, content, room)

    async def rows(self, chat_id: str = "c1", user: str = "ada") -> list[Row]:
        """Return what is stored of a conversation."""
        page = await self.agent.conversation(self.key(chat_id, user)).history()
        return list(page.items)

    async def texts(self, chat_id: str = "c1", user: str = "ada") -> list[str]:
        """Return the stored texts of a conversation."""
        return [row.message.text for row in await self.rows(chat_id, user)]

    def key(self, chat_id: str = "c1", user: str = "ada") -> ConversationKey:
        """Return the conversation of a user's chat."""
        ref = per_user_sessions(None, Principal("acme", user), chat_id)
        return ConversationKey("acme", "site", ref.key.channel, ref.key.thread)

    async def begun(self, text: str) -> None:
        """Wait until the driver has a message."""
        async with asyncio.timeout(LIMIT_S):
            await self.driver.begun(text).wait()

    def release(self, *texts: str) -> None:
        """Let the driver go on with some messages."""
        for text in texts:
            self.driver.go_on(text).set()


SetSite = Callable[..., Awaitable[Site]]
