"""Following: responses that carry what a run says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from vitehub_chat.streams.sse import DONE_FRAME, KEEP_ALIVE_FRAME, OPEN_FRAME
from vitehub_chat.web.runs import LiveRun


class RunResponse(Response):
    """Server-sent events of a run, from its start; a client that goes away stops nothing.

    Args:
        run: The run.
        keepalive_s: After so many silent seconds a comment is sent.
        ends_with_mark: Whether the last frame is the end mark of the AI SDK.
    """

    def __init__(self, run: LiveRun, keepalive_s: float, *, ends_with_mark: bool = True) -> None:
        super().__init__(status_code=200)
        self._run = run
        self._keepalive_s = keepalive_s
        self._ends_with_mark = ends_with_mark

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
        async with aclosing(self._run.buffer.follow(self._keepalive_s)) as chunks:
            async for chunk in chunks:
                yield KEEP_ALIVE_FRAME if chunk is None else self._run.encoder.frame(chunk)
        if self._ends_with_mark:
            yield DONE_FRAME


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
