"""Stream: a turn as it happens, for whoever follows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Self

from vitehub_chat.conversation.control import TurnControl
from vitehub_chat.conversation.driving import Sink
from vitehub_chat.model.events import AgentEvent, RunFailed
from vitehub_chat.model.results import RunResult
from vitehub_chat.streams.encoders import Encoder

Start = Callable[[TurnControl, Sink], asyncio.Task[RunResult]]


class AgentStream:
    """The items of one turn, in the form of its output.

    The turn begins with the first iteration, or with `result`, as a task of its own. Closing the
    stream or cancelling who reads it does not stop the turn; `stop` does. One reader at a time.
    """

    def __init__(self, start: Start, encoder: Encoder, *, raises: bool) -> None:
        self._start = start
        self._encoder = encoder
        self._raises = raises
        self._control = TurnControl()
        self._task: asyncio.Task[RunResult] | None = None
        self._items: list[Any] = []
        self._read = 0
        self._changed = asyncio.Event()
        self._has_failed = False
        self._is_closed = False

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of an HTTP response that carries `sse()`."""
        return self._encoder.headers

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        """Return the next item.

        Raises:
            StopAsyncIteration: The turn is over, or the stream was closed.
            Exception: What the turn raised before it began, or with output `events` at any time.
        """
        task = self._begin()
        while self._read >= len(self._items):
            if self._is_closed:
                raise StopAsyncIteration
            if task.done():
                self._raise_error(task)
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        item = self._items[self._read]
        self._items[self._read] = None
        self._read += 1
        return item

    async def sse(self) -> AsyncIterator[str]:
        """Yield the stream as frames of server-sent events, with the end mark of its form."""
        async for item in self:
            yield self._encoder.frame(item)
        for frame in self._encoder.end_frames:
            yield frame

    async def result(self) -> RunResult:
        """Return the result of the turn once it is recorded; raises what the turn raised.

        Cancelling this waiting does not stop the turn.
        """
        return await asyncio.shield(self._begin())

    def stop(self) -> None:
        """Stop the turn; what it has so far is recorded as interrupted."""
        stop_stream(self, "stopped")

    async def aclose(self) -> None:
        """Stop following; the turn goes on."""
        self._is_closed = True
        self._items.clear()
        self._read = 0
        self._changed.set()

    def _begin(self) -> asyncio.Task[RunResult]:
        if self._task is None:
            self._task = self._start(self._control, self._take)
            self._task.add_done_callback(self._end)
        return self._task

    def _take(self, event: AgentEvent) -> None:
        self._has_failed = self._has_failed or isinstance(event, RunFailed)
        if not self._is_closed:
            self._items.extend(self._encoder.encode(event))
            self._changed.set()

    def _end(self, task: asyncio.Task[RunResult]) -> None:
        # Looking at the exception marks it as seen: it is told by the items, or by `result`.
        _ = task.cancelled() or task.exception()
        self._changed.set()

    def _raise_error(self, task: asyncio.Task[RunResult]) -> None:
        if task.cancelled():
            raise asyncio.CancelledError
        error = task.exception()
        if error is not None and (self._raises or not self._has_failed):
            raise error


def stop_stream(stream: AgentStream, reason: str) -> None:
    """Stop the turn of a stream as `stop` does, for a reason that the log names."""
    stream._control.stop(reason)  # noqa: SLF001 - its own
