"""Workers: threads that own a connection each and run jobs on it.

A worker never keeps the process from ending, and never outlives a fork: the process that forks
closes every file first. SQLite notes the locks of a process in its memory, so that a child with
that memory would believe in locks it does not have, and lose what it writes.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol
from weakref import WeakSet

from vitehub_chat.errors import StateClosedError
from vitehub_chat.state.jobs import deliver
from vitehub_chat.state.providers.sqlite.jobs import Job


class Handle(Protocol):
    """An open connection and what is done with it; used by one thread at a time."""

    @property
    def is_broken(self) -> bool:
        """Whether another connection may do better: it has misread, or its file is gone."""

    def run(self, jobs: Sequence[Job], more: Callable[[], Sequence[Job]], /) -> None:
        """Run jobs, giving each an answer or an error; `more` gives those that came meanwhile."""

    def run_now(self, job: Job, /) -> bool:
        """Run a job that reads, on the event loop; False if it may take long, and is not run."""

    def tidy(self) -> bool:
        """Do a little housekeeping if any is due; tell whether more is left."""

    def close(self) -> None:
        """Close the connection."""


class Worker:
    """A thread that takes jobs in order, `batch` at a time, and opens its handle when needed."""

    def __init__(
        self, name: str, open_handle: Callable[[], Handle], *, batch: int, survives_fork: bool
    ) -> None:
        """Make a worker; its thread starts with the first job.

        `survives_fork` says that the handle may be closed around a fork and opened again.
        """
        self._name = name
        self._open_handle = open_handle
        self._batch = batch
        self._survives_fork = survives_fork
        self._queue: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._state = threading.Lock()
        self._gate = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._is_working = False
        self._handle: Handle | None = None
        with _registering:
            _workers.add(self)

    def submit(self, job: Job) -> None:
        """Put a job behind the others; one without a step closes the worker after them.

        Raises:
            StateClosedError: The worker is closed.
        """
        with self._state:
            if self._is_closed:
                raise StateClosedError
            self._is_closed = job.step is None
            self._queue.put(job)
            if self._thread is None:
                # As a daemon, or a state that is left open would hang the exit of the process.
                thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                thread.start()
                self._thread = thread

    def run_now(self, job: Job) -> bool:
        """Run a job on the thread that asks, unless another one runs or waits; waits for nothing.

        Tells whether it was run; its answer is in it, and nobody is woken.
        """
        if self._is_closed or not self._queue.empty() or not self._gate.acquire(blocking=False):
            return False
        try:
            handle = self._handle
            return handle is not None and not handle.is_broken and handle.run_now(job)
        finally:
            self._gate.release()

    @property
    def is_busy(self) -> bool:
        """Whether a job runs now or waits; housekeeping does not count."""
        return self._is_working or not self._queue.empty()

    def pause(self) -> None:
        """Wait for the jobs that run; nothing runs from now until `resume`."""
        self._gate.acquire()

    def let_go(self) -> None:
        """Close the file while nothing runs; the next job opens it again."""
        if self._survives_fork:
            self._drop()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._gate.release()

    def _work(self) -> None:
        try:
            self._serve()
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            with self._state:
                self._is_closed = True
            while not self._queue.empty():
                job = self._queue.get()
                job.fail(error)
                deliver([job])

    def _serve(self) -> None:
        is_busy = False
        while True:
            jobs: list[Job] = []
            self._take(jobs, wait=not is_busy)
            with self._gate:
                if jobs:
                    self._run(jobs)
                if jobs and jobs[-1].step is None:
                    self._close(jobs[-1])
                    return
                is_busy = self._tidy()
            del jobs  # or their answers would live until the next job

    def _take(self, jobs: list[Job], *, wait: bool) -> Sequence[Job]:
        """Add what waits to some jobs, and return what has a step of that."""
        first = len(jobs)
        while len(jobs) < self._batch and (not jobs or jobs[-1].step is not None):
            try:
                jobs.append(self._queue.get(block=wait and not jobs))
            except queue.Empty:
                break
        return _steps_of(jobs[first:])

    def _run(self, jobs: list[Job]) -> None:
        """Run jobs, and those that come meanwhile, which are added to them."""
        self._is_working = True
        try:
            if _steps_of(jobs):
                if self._handle is not None and self._handle.is_broken and self._survives_fork:
                    self._drop()
                self._handle = self._handle or self._open_handle()
                self._handle.run(_steps_of(jobs), lambda: self._take(jobs, wait=False))
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            for job in _steps_of(jobs):
                job.fail(error)
            if self._survives_fork:
                self._drop()
        self._is_working = False
        deliver(_steps_of(jobs))

    def _close(self, job: Job) -> None:
        try:
            self._drop()
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            job.fail(error)
        deliver([job])

    def _tidy(self) -> bool:
        return self._handle is not None and self._handle.tidy()

    def _drop(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()


def _steps_of(jobs: Sequence[Job]) -> Sequence[Job]:
    """Return the jobs that have a step; one without closes the worker, and is the last."""
    return jobs[:-1] if jobs and jobs[-1].step is None else jobs[:]


_registering: Final = threading.Lock()
_workers: WeakSet[Worker] = WeakSet()
_paused: list[Worker] = []


def _before_fork() -> None:
    _registering.acquire()
    for worker in list(_workers):
        worker.pause()
        _paused.append(worker)
    for worker in _paused:
        worker.let_go()


def _after_fork_in_parent() -> None:
    while _paused:
        _paused.pop().resume()
    _registering.release()


def _after_fork_in_child() -> None:
    # The parent's threads do not exist here, so its workers never run again.
    _workers.clear()
    _after_fork_in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
