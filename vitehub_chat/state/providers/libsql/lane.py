"""The lane: one write in flight for each process and URL; what waits shares the next request.

Some servers stop taking writes for ever when several are in flight at once. The event loop that
writes while the lane is empty leads: its task sends everything, also for other loops, until
nothing waits. When it is cancelled or its loop is closed, another loop leads.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final
from weakref import WeakValueDictionary

import attrs

from vitehub_chat.errors import ChatError
from vitehub_chat.state.providers.libsql.answers import Answer, Rows
from vitehub_chat.state.providers.libsql.circuit import Circuit
from vitehub_chat.state.providers.libsql.failures import AttemptError, unavailable
from vitehub_chat.state.providers.libsql.jobs import Job, Writer
from vitehub_chat.state.providers.libsql.limits import Limits
from vitehub_chat.state.providers.libsql.positions import LogPosition


@attrs.define(eq=False)
class _Leader:
    """Who sends at the moment.

    Attributes:
        answered: Done when the answer to what is in flight is there.
        sending: What is in flight.
        since: When its last request began.
    """

    loop: asyncio.AbstractEventLoop
    answered: asyncio.Future[None]
    sending: Sequence[Job] = ()
    since: float = attrs.field(factory=time.monotonic)
    task: asyncio.Task[None] | None = None


class Lane:
    """The writes of one process to one URL.

    Attributes:
        circuit: Whether the server takes writes.
        position: How far the log of the database was.
    """

    def __init__(self) -> None:
        """Start with an empty lane."""
        self.circuit = Circuit()
        self.position = LogPosition()
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._leader: _Leader | None = None

    async def run(self, job: Job, limits: Limits) -> list[Rows]:
        """Return the rows of the statements of a job; it waits for its turn.

        Cancelling takes a job back that waits, and does nothing to one that was sent.

        Raises:
            AttemptError: There is no answer for it.
        """
        with self._lock:
            self._waiting.append(job)
        self._lead_if_needed(limits)
        try:
            while not (await asyncio.wait((job.future,), timeout=2 * limits.request))[0]:
                self._lead_if_needed(limits)
        finally:
            job.future.cancel()  # no-op if it is done
        return job.future.result()

    async def settle(self, writer: Writer) -> None:
        """Wait for what is in flight, if the running loop sends something of a writer."""
        leader = self._leader
        while leader is not None and leader.loop is asyncio.get_running_loop():
            if all(job.writer is not writer for job in leader.sending):
                return
            await asyncio.wait((leader.answered,))
            leader = self._leader

    def _lead_if_needed(self, limits: Limits) -> None:
        """Let the running loop lead if nobody does who can."""
        loop = asyncio.get_running_loop()
        with self._lock:
            last = self._leader
            if not self._waiting or (last is not None and not _has_stopped(last, limits)):
                return
            self._leader = _Leader(loop, loop.create_future())
            self._leader.task = loop.create_task(self._lead(self._leader, limits))
        if last is not None:
            _fail(last.sending)

    async def _lead(self, me: _Leader, limits: Limits) -> None:
        try:
            while self._take(me, limits):
                await self._send(me.sending)
                me.answered.set_result(None)
        finally:
            me.answered.cancel()  # no-op if it is done
            self._step_down(me, limits)

    def _take(self, me: _Leader, limits: Limits) -> bool:
        """Take what goes into the next request; False if nothing waits or somebody else leads."""
        with self._lock:
            if self._leader is not me:
                return False
            jobs: list[Job] = []
            size = 0
            while self._waiting and len(jobs) < limits.writes:
                job = self._waiting[0]
                if job.future.done():
                    self._waiting.popleft()
                    continue
                size += job.size
                if jobs and (size > limits.write_bytes or job.writer is not jobs[0].writer):
                    break
                jobs.append(self._waiting.popleft())
            me.sending, me.since = jobs, time.monotonic()
            me.answered = me.loop.create_future()
            if not jobs:
                self._leader = None
            return bool(jobs)

    async def _send(self, jobs: Sequence[Job]) -> None:
        for job, answer in zip(jobs, await self._write(jobs), strict=True):
            job.settle(answer)

    async def _write(self, jobs: Sequence[Job]) -> Sequence[Answer | Exception]:
        writer = jobs[0].writer
        try:
            await self.circuit.check(writer.probe_writes)
            answers, index = await writer.write([job.batch for job in jobs])
        except AttemptError as failure:
            if failure.timed_out and await writer.answers_reads():
                self.circuit.open()
            return [failure] * len(jobs)
        except ChatError as error:
            return [AttemptError(error, "never", error.__cause__)] * len(jobs)
        except Exception as error:  # noqa: BLE001  whoever waits gets it
            return [error] * len(jobs)
        self.position.note_write(index)
        return answers

    def _step_down(self, me: _Leader, limits: Limits) -> None:
        """Hand the lane over after being cancelled; no-op after the last job."""
        with self._lock:
            if self._leader is not me:
                return
            self._leader = None
            others = [job.loop for job in self._waiting if job.loop is not me.loop]
        _fail(me.sending)
        for loop in dict.fromkeys(others):
            try:
                loop.call_soon_threadsafe(self._lead_if_needed, limits)
            except RuntimeError:  # that loop is closed
                continue
            break


def _has_stopped(leader: _Leader, limits: Limits) -> bool:
    """Tell whether a leader does not go on, because nobody runs its loop any more."""
    return leader.loop.is_closed() or time.monotonic() - leader.since > 3 * limits.request


def _fail(jobs: Sequence[Job]) -> None:
    failure = unavailable("the event loop that wrote has stopped", "idempotent")
    for job in jobs:
        job.settle(failure)


_lanes: Final[WeakValueDictionary[tuple[int, str], Lane]] = WeakValueDictionary()


def lane_for(base_url: str) -> Lane:
    """Return the lane of this process to a URL, there as long as somebody has it."""
    return _lanes.setdefault((os.getpid(), base_url), Lane())
