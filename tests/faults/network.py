"""The network between a state and its server: it can stand still, lose an answer, or be gone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

_BYTES = 65536


class Network:
    """A way to a port of the loopback, with a thread of its own.

    Attributes:
        port: Where it begins.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._moves = asyncio.Event()
        self._moves.set()
        self._loses: bytes | None = None
        self._holds: bytes | None = None
        self._left: int | None = None
        self._at_last: Callable[[], None] = _do_nothing
        self._held = threading.Event()
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._listen())
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def stop(self) -> None:
        """Let nothing through in either direction until `go_on`; connections stay."""
        self._loop.call_soon_threadsafe(self._moves.clear)

    def go_on(self) -> None:
        """Let everything through again."""
        self._loop.call_soon_threadsafe(self._moves.set)

    def lose_answer_to(self, text: bytes) -> None:
        """Pass on the next request that contains a text, and drop its connection then."""
        self._loses = text

    def hold_answer_to(self, text: bytes) -> None:
        """Pass on the next request that contains a text, and let nothing through from then on."""
        self._held.clear()
        self._holds = text

    def call_before(self, number: int, call: Callable[[], None]) -> None:
        """Call something before the piece of that number passes, in either direction."""
        self._at_last = call
        self._left = number

    def wait_until_held(self) -> None:
        """Wait until a request was passed on whose answer is held back."""
        assert self._held.wait(20)

    def cut(self) -> None:
        """Drop every connection and refuse others."""
        self._call(self._close_server())

    def mend(self) -> None:
        """Accept connections again."""
        self._call(self._listen())

    def _call(self, coroutine: object) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(20)  # type: ignore[arg-type]

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close_server(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.wait(self._tasks) if self._tasks else None

    async def _end(self) -> None:
        self._moves.set()
        await self._close_server()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            with suppress(OSError):
                await self._connect(reader, writer)
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            self._tasks.discard(task)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers.add(requests)
        try:
            ways = [
                asyncio.ensure_future(self._pass_on(reader, requests)),
                asyncio.ensure_future(self._pass_on(answers, writer)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            requests.transport.abort()
            self._writers.discard(requests)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen = b""
        while data := await reader.read(_BYTES):
            await self._moves.wait()
            self._count()
            seen = seen[-_BYTES:] + data
            loses = self._loses is not None and self._loses in seen
            holds = self._holds is not None and self._holds in seen
            if holds:
                self._holds = None
                self._moves.clear()
            writer.write(data)
            await writer.drain()
            if holds:
                self._held.set()
            if loses:
                self._loses = None
                return

    def _count(self) -> None:
        if self._left is not None:
            self._left -= 1
            if not self._left:
                self._left = None
                self._at_last()


def _do_nothing() -> None:
    """Do nothing."""
