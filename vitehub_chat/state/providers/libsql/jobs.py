"""Jobs: batches on their way to the server, and their answers on the way back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Protocol

import attrs

from vitehub_chat.state.providers.libsql.answers import Answer, Rows
from vitehub_chat.state.providers.libsql.failures import AttemptError

Batch = Sequence[bytes]
"""Encoded statements that are written together or not at all."""


class Writer(Protocol):
    """Who can send batches: those of one writer may share a request."""

    async def write(self, batches: Sequence[Batch], /) -> tuple[Sequence[Answer], int | None]:
        """Write batches, and return their answers and how far the log is then."""

    async def answers_reads(self) -> bool:
        """Tell whether the server answers reads."""

    async def probe_writes(self) -> None:
        """Write nothing, to see whether the server lets it."""


@attrs.frozen(eq=False)
class Job:
    """A batch that somebody waits for on an event loop.

    Attributes:
        writer: Who sends it.
        batch: What to write.
        size: Its length in bytes.
        future: Where the answer goes; done as soon as nobody waits any more.
    """

    writer: Writer
    batch: Batch
    size: int
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[list[Rows]]

    @property
    def is_awaited(self) -> bool:
        """Whether anybody still waits for it."""
        return not (self.future.done() or self.loop.is_closed())

    def settle(self, answer: Answer | Exception) -> None:
        """Hand over an answer or raise an error, on whatever loop waits for it."""
        if self.loop is asyncio.get_running_loop():
            self._settle_here(answer)
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits
                self.loop.call_soon_threadsafe(self._settle_here, answer)

    def _settle_here(self, answer: Answer | Exception) -> None:
        if self.future.done():
            return
        if isinstance(answer, AttemptError):
            self.future.set_exception(answer.copy())
        elif isinstance(answer, Exception):
            self.future.set_exception(answer)
        else:
            self.future.set_result(answer)


def new_job(writer: Writer, batch: Batch) -> Job:
    """Return a job of the running loop."""
    loop = asyncio.get_running_loop()
    return Job(writer, batch, sum(map(len, batch)), loop, loop.create_future())
