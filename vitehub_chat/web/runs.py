"""Runs: the turns of an application, which go on whoever follows them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable
from datetime import timedelta
from typing import Any, Final

from vitehub_chat.agent.stream import AgentStream, stop_stream
from vitehub_chat.errors import ChatError
from vitehub_chat.model.events import AgentEvent, RunFailed, RunStarted
from vitehub_chat.model.results import RunResult
from vitehub_chat.streams.chunks import Chunk
from vitehub_chat.streams.encoders import Encoder
from vitehub_chat.web.access import Place
from vitehub_chat.web.problems import Problem, problem_of
from vitehub_chat.web.replay import ReplayBuffer

PlaceKey = tuple[str, str | None]
ACCOMPANY_S: Final = 5.0
"""How long what goes on beside the turns may take longer than they, when all of them end."""


def place_key(place: Place) -> PlaceKey:
    """Return under which key the runs of a place are kept."""
    return place.key.encode(), place.session_id


class LiveRun:
    """One turn, with what it has said.

    Attributes:
        buffer: Its chunks.
        encoder: What makes the chunks, and frames of them.
        message_id: The id of its answer, once it has begun.
        user_message_id: The id of the message that it answers, or None.
        error: What it raised, or None.
        problem: What kept it from beginning, or None; who follows it already is told so.
        error_text: What people are told of a failure, or None.
        far_id: The name under which other processes know it, or None.
    """

    def __init__(self, stream: AgentStream, encoder: Encoder, user_message_id: str | None) -> None:
        self.buffer = ReplayBuffer()
        self.message_id: str | None = None
        self.user_message_id = user_message_id
        self.error: Exception | None = None
        self.problem: Problem | None = None
        self.error_text: str | None = None
        self.far_id: str | None = None
        self._stream = stream
        self.encoder = encoder
        self.task = asyncio.create_task(self._pump())

    def follow(self, idle_s: float | None = None) -> AsyncGenerator[Chunk | None]:
        """Yield the chunks from the start, then live; None whenever nothing came for `idle_s`."""
        return self.buffer.follow(idle_s)

    @property
    def is_here(self) -> bool:
        """Whether it runs in the event loop that asks."""
        return self.task.get_loop() is asyncio.get_running_loop()

    async def ended(self) -> None:
        """Wait until the turn is over and recorded; cancelling this stops nothing."""
        await asyncio.wait({self.task})

    async def result(self) -> RunResult:
        """Return the result once it is recorded; raises what the turn raised."""
        await self.ended()
        return await self._stream.result()

    def stop(self, reason: str = "stopped") -> None:
        """Stop the turn; what it has so far is recorded as interrupted."""
        stop_stream(self._stream, reason)

    async def _pump(self) -> None:
        try:
            async for event in self._stream:
                self._take(event)
        except Exception as error:  # noqa: BLE001 - told by the response and by the stream
            self.error = error
            if self.buffer.is_empty:
                self.problem = problem_of(error, message_id=self.user_message_id)
            self._tell_failed(error, self.problem)
        finally:
            self.buffer.close()

    def _take(self, event: AgentEvent) -> None:
        if isinstance(event, RunStarted):
            self.message_id = self.message_id or event.message_id
        elif isinstance(event, RunFailed):
            self.error_text = event.text
        for chunk in self.encoder.encode(event):
            self.buffer.add(chunk)

    def _tell_failed(self, error: Exception, problem: Problem | None) -> None:
        """End the stream, also one that has said nothing: its response may be open all the same."""
        code = error.code if isinstance(error, ChatError) else "internal"
        failed = RunFailed(text=None, code=code)
        if problem is not None:
            failed = RunFailed(text=problem.text, code=problem.code)
        for chunk in self.encoder.encode(failed):
            self.buffer.add(chunk)


class RunRegistry:
    """The turns that run here, with strong references, by their place."""

    def __init__(self) -> None:
        self._runs: dict[PlaceKey, list[LiveRun]] = {}
        self._accompanying: set[asyncio.Task[None]] = set()

    def accompany(self, work: Coroutine[Any, Any, None]) -> None:
        """Start what goes on beside a turn as a task of its own."""
        task = asyncio.create_task(work)
        self._accompanying.add(task)
        task.add_done_callback(self._accompanying.discard)

    def start(
        self, place: Place, stream: AgentStream, encoder: Encoder, user_message_id: str | None
    ) -> LiveRun:
        """Start a turn as a task of its own."""
        run, key = LiveRun(stream, encoder, user_message_id), place_key(place)
        self._runs.setdefault(key, []).append(run)

        def forget(_task: asyncio.Task[None]) -> None:
            runs = self._runs[key]
            runs.remove(run)
            if not runs:
                del self._runs[key]

        run.task.add_done_callback(forget)
        return run

    def find(self, place: Place) -> LiveRun | None:
        """Return the run of a place that has begun, else the first that waits, or None."""
        runs = self._at(place)
        begun = (run for run in runs if run.message_id is not None)
        return next(begun, runs[0] if runs else None)

    async def stop(self, place: Place, message_id: str | None) -> LiveRun | None:
        """Stop what runs in a place, and return the first of it once all is recorded.

        With a message id only the run of that answer or message; None if there is none.
        """
        stopped = [
            run
            for run in self._at(place)
            if message_id is None or message_id in {run.message_id, run.user_message_id}
        ]
        await _end(stopped)
        return stopped[0] if stopped else None

    def far_ids(self, place: Place) -> frozenset[str]:
        """Return the names under which other processes know the runs of a place."""
        runs = self._at(place)
        return frozenset(run.far_id for run in runs if run.far_id is not None)

    async def settle(self, grace: timedelta) -> None:
        """Wait until the turns end by themselves; stop those that outlast the grace."""
        runs = [run for each in self._runs.values() for run in each if run.is_here]
        if runs:
            await asyncio.wait([run.task for run in runs], timeout=grace.total_seconds())
        late = [run for run in runs if not run.task.done()]
        await _end(late, "shutdown")
        loop = asyncio.get_running_loop()
        beside = [task for task in self._accompanying if task.get_loop() is loop]
        if beside:
            await asyncio.wait(beside, timeout=ACCOMPANY_S)

    def _at(self, place: Place) -> list[LiveRun]:
        runs = self._runs.get(place_key(place), ())
        return [run for run in runs if run.is_here and not run.task.done()]


async def _end(runs: Iterable[LiveRun], reason: str = "stopped") -> None:
    waiting = []
    for run in runs:
        run.stop(reason)
        waiting.append(run.task)
    if waiting:
        await asyncio.wait(waiting)
