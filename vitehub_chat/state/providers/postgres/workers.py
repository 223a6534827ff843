"""Workers: a few threads that own a connection each and run jobs on it.

They never keep the process from ending. They do not exist in a forked process, which makes its
own and leaves the sockets of these alone.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from vitehub_chat.errors import StateClosedError
from vitehub_chat.state.jobs import Job, deliver


class Handle(Protocol):
    """What runs jobs; used by one thread at a time."""

    def run(self, job: Job, /) -> None:
        """Run a job, giving it an answer or an error."""

    def tidy(self) -> bool:
        """Do a little housekeeping if any is due; tell whether more is left."""

    def close(self) -> None:
        """Let go of everything."""


class Workers:
    """At most so many threads that take jobs in order; each starts when it is needed."""

    def __init__(self, name: str, new_handle: Callable[[], Handle], *, most: int) -> None:
        self._name = name
        self._new_handle = new_handle
        self._most = most
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._idle = 0
        self._running = 0
        self._closing: Job | None = None

    def submit(self, job: Job) -> None:
        """Put a job behind the others; one without a step closes the workers after them.

        Raises:
            StateClosedError: The workers are closed.
        """
        with self._changed:
            if self._closing is not None:
                raise StateClosedError
            if job.step is None:
                self._close(job)
                return
            self._jobs.append(job)
            if len(self._jobs) > self._idle and self._running < self._most:
                self._start()
            self._changed.notify()

    def _close(self, job: Job) -> None:
        self._closing = job
        self._changed.notify_all()
        if not self._running:
            deliver([job])

    def _start(self) -> None:
        self._running += 1
        # As a daemon, or a state that is left open would hang the exit of the process.
        threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        handle = self._new_handle()
        try:
            while (job := self._take()) is not None:
                handle.run(job)
                deliver([job])
                del job  # or its answer would live until the next one
                self._tidy(handle)
        finally:
            try:
                handle.close()
            finally:
                self._leave()

    def _take(self) -> Job | None:
        """Return the next job; None when there are no more and the workers are closed."""
        with self._changed:
            self._idle += 1
            while not self._jobs and self._closing is None:
                self._changed.wait()
            self._idle -= 1
            return self._jobs.popleft() if self._jobs else None

    def _tidy(self, handle: Handle) -> None:
        while handle.tidy():
            if self._jobs or self._closing is not None:
                return

    def _leave(self) -> None:
        with self._changed:
            self._running -= 1
            is_last = not self._running
        if is_last and self._closing is not None:
            deliver([self._closing])
