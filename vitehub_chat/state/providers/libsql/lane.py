"""The lane: one write in flight for each process and URL; what waits shares the next request.

Some servers stop taking writes for ever when several are in flight at once. One event loop leads at
a time: its task sends what waits on that loop, in one request after the other, until what waits
longest is of another loop, which leads then. So a loop that ends takes nothing with it but its own
writes. When a loop that leads is closed or stands still, another one leads.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Final
from weakref import WeakValueDictionary

import attrs

from vitehub_chat.errors import ChatError
from vitehub_chat.model.forking import ForkSafeLock
from vitehub_chat.state.providers.libsql.answers import Answer, Rows
from vitehub_chat.state.providers.libsql.circuit import Circuit
from vitehub_chat.state.providers.libsql.failures import AttemptError, unavailable
from vitehub_chat.state.providers.libsql.jobs import Job, Writer
from vitehub_chat.state.providers.libsql.limits import Limits
from vitehub_chat.state.providers.libsql.positions import LogPosition

_LOOK_AGAIN: Final = 1.0
"""How often who waits looks whether anybody leads, in seconds."""


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
        self._lock = ForkSafeLock()
        self._waiting: list[Job] = []
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
            while not (await asyncio.wait((job.future,), timeout=_LOOK_AGAIN))[0]:
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
            if last is not None and not _has_stopped(last, limits):
                return
            if all(job.loop is not loop for job in self._waiting):
                return
            self._leader = _Leader(loop, loop.create_future())
            self._leader.task = loop.create_task(self._lead(self._leader, limits))
        if last is not None:
            _fail(last.sending)

    def _begin(self, me: _Leader, limits: Limits) -> None:
        """Lead as somebody who was asked to; no-op if another loop did not wait for that."""
        with self._lock:
            if self._leader is me:
                me.task = me.loop.create_task(self._lead(me, limits))

    async def _lead(self, me: _Leader, limits: Limits) -> None:
        try:
            while self._take(me, limits):
                await self._send(me.sending)
                me.answered.set_result(None)
        finally:
            me.answered.cancel()  # no-op if it is done
            self._step_down(me, limits)

    def _take(self, me: _Leader, limits: Limits) -> bool:
        """Take what goes into the next request; False if nothing waits or another loop leads."""
        with self._lock:
            if self._leader is not me:
                return False
            self._waiting = [job for job in self._waiting if job.is_awaited]
            first = next((job for job in self._waiting if job.loop.is_running()), None)
            if first is None or first.loop is not me.loop:
                self._pass_on(limits)
                return False
            jobs = _first_of([job for job in self._waiting if job.loop is me.loop], limits)
            taken = set(jobs)
            self._waiting = [job for job in self._waiting if job not in taken]
            me.sending, me.since = jobs, time.monotonic()
            me.answered = me.loop.create_future()
            return True

    def _pass_on(self, limits: Limits, *, ending: asyncio.AbstractEventLoop | None = None) -> None:
        """Ask the loop to lead on which something waits longest, of those that run and go on."""
        self._leader = None
        for job in self._waiting:
            if job.loop is ending or not job.loop.is_running():
                continue
            leader = _Leader(job.loop, job.loop.create_future())
            try:
                job.loop.call_soon_threadsafe(self._begin, leader, limits)
            except RuntimeError:  # that loop was closed just now
                continue
            self._leader = leader
            return

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
        """Hand the lane over after being cancelled; no-op if another loop leads already."""
        with self._lock:
            if self._leader is not me:
                return
            self._pass_on(limits, ending=me.loop)
        _fail(me.sending)


def _first_of(jobs: Sequence[Job], limits: Limits) -> Sequence[Job]:
    """Return the first jobs that may share a request."""
    size, count = 0, 0
    for job in jobs[: limits.writes]:
        size += job.size
        if count and (size > limits.write_bytes or job.writer is not jobs[0].writer):
            break
        count += 1
    return jobs[:count]


def _has_stopped(leader: _Leader, limits: Limits) -> bool:
    """Tell whether a leader does not go on, because nobody runs its loop any more."""
    if leader.loop is asyncio.get_running_loop():
        return False
    return leader.loop.is_closed() or time.monotonic() - leader.since > 3 * limits.request


def _fail(jobs: Sequence[Job]) -> None:
    failure = unavailable("the event loop that wrote has stopped", "idempotent")
    for job in jobs:
        job.settle(failure)


_lanes: Final[WeakValueDictionary[tuple[int, str], Lane]] = WeakValueDictionary()


def lane_for(base_url: str) -> Lane:
    """Return the lane of this process to a URL, there as long as somebody has it."""
    return _lanes.setdefault((os.getpid(), base_url), Lane())
