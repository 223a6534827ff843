"""Following: responses that carry what a run says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from vitehub_chat.streams.chunks import Chunk
from vitehub_chat.streams.encoders import Encoder
from vitehub_chat.streams.sse import KEEP_ALIVE_FRAME, OPEN_FRAME


class Followed(Protocol):
    """A run that can be followed."""

    @property
    def encoder(self) -> Encoder:
        """What makes frames of its chunks."""

    def follow(self, idle_s: float | None = None, /) -> AsyncGenerator[Chunk | None]:
        """Yield the chunks from the start, then live; None whenever nothing came for `idle_s`."""


class RunResponse(Response):
    """Server-sent events of a run, from its start; a client that goes away stops nothing.

    Args:
        run: The run, here or in another process.
        keepalive_s: After so many silent seconds a comment is sent.
    """

    def __init__(self, run: Followed, keepalive_s: float) -> None:
        super().__init__(status_code=200)
        self._run = run
        self._keepalive_s = keepalive_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the frames until the run ends or the client is gone."""
        sending = asyncio.create_task(self._send_all(scope, send))
        leaving = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            results = await asyncio.gather(sending, leaving, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, OSError):
                raise result

    async def _send_all(self, scope: Scope, send: Send) -> None:
        headers = _headers(self._run.encoder.headers, str(scope.get("http_version", "1.1")))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with aclosing(self._frames()) as frames:
            async for frame in frames:
                body = {"type": "http.response.body", "body": frame.encode(), "more_body": True}
                await send(body)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _frames(self) -> AsyncGenerator[str]:
        yield OPEN_FRAME
        async with aclosing(self._run.follow(self._keepalive_s)) as chunks:
            async for chunk in chunks:
                yield KEEP_ALIVE_FRAME if chunk is None else self._run.encoder.frame(chunk)
        for frame in self._run.encoder.end_frames:
            yield frame


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


def _headers(headers: Mapping[str, str], http_version: str) -> list[tuple[bytes, bytes]]:
    is_old = http_version.startswith("1")
    return [
        (name.encode(), value.encode())
        for name, value in headers.items()
        if is_old or name != "connection"
    ]
