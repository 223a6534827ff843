"""Jobs: steps on their way through a worker, and their answers on the way back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from vitehub_chat.state.tables import Transaction


@attrs.define(eq=False)
class Job:
    """A step that somebody waits for on an event loop.

    Attributes:
        step: What to do; None closes the worker.
        error: Why it failed, or None.
    """

    step: Callable[[Transaction], Any] | None
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    answer: Any = None
    error: BaseException | None = None

    def run(self, tables: Transaction) -> None:
        """Run the step and keep its answer."""
        self.error = None
        if self.step is not None:
            self.answer = self.step(tables)

    def fail(self, error: BaseException) -> None:
        """Keep an error in place of an answer."""
        if isinstance(error, StopIteration):
            wrapped = RuntimeError("a step raised StopIteration")  # no future takes the original
            wrapped.__cause__ = error
            error = wrapped
        self.answer, self.error = None, error

    def settle(self) -> None:
        """Hand over answer or error, on the loop; no-op for who does not wait any more."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
            self.error = None
        else:
            self.future.set_result(self.answer)


def new_job(step: Callable[[Transaction], Any] | None) -> Job:
    """Return a job of the running loop."""
    loop = asyncio.get_running_loop()
    return Job(step, loop, loop.create_future())


def deliver(jobs: Iterable[Job]) -> None:
    """Hand over the answers of jobs, waking each loop once; nobody is left on a closed one."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, mine in by_loop.items():
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, mine)


def _settle(jobs: Iterable[Job]) -> None:
    for job in jobs:
        job.settle()
