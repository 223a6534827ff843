"""Load: 200 streams at once on one process, of which half hang up and some read slowly."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

import vitehub_chat.web.routes  # noqa: F401 - imported before an event loop runs
from tests.web.serving import running
from tests.web.site import API, read_stream, text_of, turn, who
from vitehub_chat import Agent, chat, define_agent, open_agent_state
from vitehub_chat.agent.driver import DriverCall, ToolSpec
from vitehub_chat.model.events import Done, DriverEvent, TextDelta
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.web import MountedChat, Principal, mount_chat, per_user_sessions

STREAMS = 200
ROUNDS = 10
LIMIT_S = 110
SMALL_BUFFER = 4096
PIECE = 2000
PIECES = {"drops": 3, "reads": 3, "stalls": 100}
"""Of how many pieces an answer is; one to a slow reader does not fit into what is buffered."""
MAY_GROW = 20 * 1024 * 1024


def kind_of(number: int, turn_number: int) -> str:
    """Return how a client reads one answer: every second one hangs up in the middle."""
    return ("drops", "reads", "drops", "stalls")[(number + turn_number) % 4]


def said(number: int, turn_number: int) -> str:
    return f"{kind_of(number, turn_number)} {number} {turn_number}"


def answer_to(text: str) -> list[str]:
    """Return the pieces of the answer to a message."""
    count = PIECES[text.split(" ", maxsplit=1)[0]]
    return [f"{text} {piece:03}".ljust(PIECE, ".") for piece in range(count)]


class GatedDriver:
    """Says the first piece of every answer, and the others once its gate is opened."""

    kind = "gated"
    profile: str | None = None
    model: str | None = None
    window_tokens: int | None = None
    tools: Sequence[ToolSpec] = ()

    def __init__(self) -> None:
        self.active = 0
        self.gate = asyncio.Event()

    async def stream(self, call: DriverCall, /) -> AsyncIterator[DriverEvent]:
        first, *others = answer_to(call.text)
        self.active += 1
        try:
            yield TextDelta("text", first)
            await self.gate.wait()
            for piece in others:
                await asyncio.sleep(0)
                yield TextDelta("text", piece)
            yield Done("stop")
        finally:
            self.active -= 1

    async def aclose(self) -> None:
        """Hold nothing."""


class Crowd:
    """Many clients of one server, each with a conversation of its own."""

    def __init__(self, server: Any, mounted: MountedChat, driver: GatedDriver) -> None:
        self._server = server
        self._mounted = mounted
        self._driver = driver
        self._port = server.servers[0].sockets[0].getsockname()[1]
        self._recorded = asyncio.Event()
        self._hung_up = 0

    async def round(self, name: str, turn_number: int) -> None:
        """Let every client have one message answered."""
        self._driver.gate.clear()
        self._recorded.clear()
        self._hung_up = 0
        clients = [
            asyncio.create_task(self._ask(f"{name}{number}", number, turn_number))
            for number in range(STREAMS)
        ]
        await until(lambda: self._driver.active == STREAMS and self._hung_up == STREAMS // 2)
        self._driver.gate.set()
        await until(lambda: not self._mounted._runs._runs)
        # All is recorded, and those that do not read are still being sent to.
        await until(lambda: len(self._server.server_state.tasks) == STREAMS // 4)
        self._recorded.set()
        await asyncio.gather(*clients)

    async def _ask(self, chat_id: str, number: int, turn_number: int) -> None:
        text = said(number, turn_number)
        reader, writer = await self._connect()
        try:
            writer.write(request_of(turn(f"m{turn_number}", text, chat_id)))
            begin = await reader.readuntil(b'"text-delta"')
            assert begin.startswith(b"HTTP/1.1 200 ")
            kind = kind_of(number, turn_number)
            if kind == "drops":
                self._hung_up += 1
                return
            if kind == "stalls":
                await self._recorded.wait()
            whole = begin + await reader.read()
            assert text_of(read_stream(content_of(whole))) == "".join(answer_to(text))
        finally:
            writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        opened = small_socket()
        opened.settimeout(0)
        await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", self._port))
        return await asyncio.open_connection(sock=opened, limit=SMALL_BUFFER)


def small_socket() -> socket.socket:
    """Return a socket that buffers little."""
    opened = socket.socket()
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        opened.setsockopt(socket.SOL_SOCKET, option, SMALL_BUFFER)
    return opened


def request_of(body: dict[str, Any]) -> bytes:
    """Return a request to answer a message."""
    content = json.dumps(body).encode()
    head = (
        f"POST {API} HTTP/1.1\r\nhost: load\r\nx-user: ada\r\nconnection: close\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def content_of(response: bytes) -> str:
    """Return the content of a response that was sent in chunks."""
    _, _, rest = response.partition(b"\r\n\r\n")
    content = b""
    while rest:
        length, _, rest = rest.partition(b"\r\n")
        size = int(length, 16)
        content, rest = content + rest[:size], rest[size + 2 :]
    return content.decode()


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    while not holds():  # noqa: ASYNC110 - a server tells nobody
        await asyncio.sleep(0.005)


def resident_bytes() -> int:
    """Return how much memory this process has now, without what is only kept to be used again."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def stored(agent: Agent, chat_id: str) -> list[tuple[str | None, str]]:
    """Return the statuses and texts of a conversation."""
    ref = per_user_sessions(None, Principal("acme", "ada"), chat_id)
    key = ConversationKey("acme", "load", ref.key.channel, ref.key.thread)
    page = await agent.conversation(key).history(limit=100)
    return [(row.status, row.message.text) for row in page.items]


def expected(number: int) -> list[tuple[str | None, str]]:
    texts = [said(number, turn_number) for turn_number in range(ROUNDS)]
    return [
        ("complete", text) for said_text in texts for text in (said_text, whole_answer(said_text))
    ]


def whole_answer(text: str) -> str:
    return "".join(answer_to(text))


@pytest.mark.slow
async def test_every_answer_is_whole_and_nothing_is_left_of_2000_turns_on_200_sockets(
    tmp_path: Path,
) -> None:
    driver, app = GatedDriver(), Starlette()
    window: Any = {"source": "transcript", "max_messages": 2}
    async with (
        asyncio.timeout(LIMIT_S),
        open_agent_state(f"file:{tmp_path}/state.db", search=False) as state,
        define_agent(
            name="load", driver=driver, capabilities=[chat(trigger_history=window)], state=state
        ) as agent,
    ):
        mounted = mount_chat(app, agent, authenticate=who, resolve_session=per_user_sessions)
        listening = small_socket()
        listening.bind(("127.0.0.1", 0))
        async with running(app, [listening]) as server:
            crowd = Crowd(server, mounted, driver)
            await crowd.round("warm", 0)
            await crowd.round("warm", 1)
            await until(lambda: not server.server_state.tasks)
            tasks, memory = asyncio.all_tasks(), resident_bytes()
            for turn_number in range(ROUNDS):
                await crowd.round("c", turn_number)
            await until(lambda: not server.server_state.tasks)
            await until(lambda: asyncio.all_tasks() <= tasks)
            grown = resident_bytes() - memory
        for number in range(STREAMS):
            assert await stored(agent, f"c{number}") == expected(number)
        assert grown < MAY_GROW
        await mounted.aclose()
