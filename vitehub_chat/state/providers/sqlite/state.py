"""The SQLite provider: an Agent State in one file, or in memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, cast

import attrs

from vitehub_chat.errors import StateClosedError
from vitehub_chat.model.clock import Clock, SystemClock
from vitehub_chat.state.hosts import check_host
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.sqlite.jobs import Job, new_job
from vitehub_chat.state.providers.sqlite.keeping import SqliteKeeper
from vitehub_chat.state.providers.sqlite.location import Location, parse_location
from vitehub_chat.state.providers.sqlite.opening import Opening
from vitehub_chat.state.providers.sqlite.passages import LARGEST_WINDOW, Passages
from vitehub_chat.state.providers.sqlite.tables import SqliteTables
from vitehub_chat.state.providers.sqlite.worker import Worker
from vitehub_chat.state.sql.mapping import Columns, Values
from vitehub_chat.state.sql.seeking import SqlSeeker
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.state.tables import Transaction

T = TypeVar("T")

WRITES_PER_COMMIT: Final = 64
READS_PER_ANSWER: Final = 8
"""How many reads wait for each other, so that the event loop wakes up once for all of them."""


def open_sqlite(url: str, *, clock: Clock | None = None, **options: Any) -> SqliteAgentState:
    """Return the Agent State in a SQLite file; `async with` opens it.

    `url` is `file:PATH`, `sqlite:PATH`, a bare path, or `:memory:`. The options are those of
    `StateOptions`.

    Raises:
        ConfigError: The URL or an option is wrong.
    """
    return SqliteAgentState(
        parse_location(url),
        clock=SystemClock() if clock is None else clock,
        options=StateOptions.from_mapping(options),
    )


class SqliteAgentState(SteppedAgentState):
    """An Agent State in a SQLite file.

    One thread writes and one reads; both serve any number of tasks, event loops and threads. A
    process that is forked goes on with threads of its own. A state in memory belongs to the
    process that opened it.

    Attributes:
        options: What it was opened with.
    """

    system = "sqlite"

    def __init__(self, location: Location, *, clock: Clock, options: StateOptions) -> None:
        is_file = location.path is not None
        features = {"group_commit", *(("durable", "shared") if is_file else ())}
        super().__init__(
            clock=clock,
            features=frozenset(features),
            retention=options.retention,
            seeker=SqlSeeker(self._ask_reader, self._ask_writer) if options.search else None,
        )
        self.options = options
        self._opening = Opening(location, options, clock)
        self._engines: dict[int, _Engine] = {}
        self.keeper = SqliteKeeper(self.run_write, self._opening, clock)

    async def run_write(self, step: Callable[[Transaction], T], /) -> T:
        """Run a step in one transaction; when it raises nothing is written.

        It runs also when nobody waits for it any more.
        """
        return await _submit(self._engine().writer, step)

    async def run_read(self, step: Callable[[Transaction], T], /) -> T:
        """Run a step that writes nothing on one consistent view."""
        return await _submit(self._engine().reader, step)

    async def read_with(self, step: Callable[[Transaction], T], needs: Needs, /) -> T:
        """Run a step like `run_read`; a small window that was read before at once, on the loop.

        While nothing is written it is made of what the writer knows, without asking the file; while
        something is, a worker reads it.
        """
        engine = self._engine()
        if not _is_small(needs) or engine.reader is engine.writer:
            return await _submit(engine.reader, step)
        place = needs.conversation, needs.session_key
        if engine.passages.may_pass(place):
            job = new_job(step)
            if engine.writer.run_now(job):
                return cast("T", job.answer)
            # Beside a writer at work every statement here could wait for the interpreter (5 ms).
            if not engine.writer.is_busy and engine.reader.run_now(job):
                return cast("T", job.answer)
        answer = await _submit(engine.reader, step)
        engine.passages.add(place)
        return answer

    async def drop(self) -> None:
        """Delete the tables of this prefix from the file, then close it; the file stays."""
        await self.run_write(lambda tables: cast(SqliteTables, tables).drop())
        await self.aclose()

    async def _ask_reader(
        self, statements: Sequence[tuple[str, Values]]
    ) -> Sequence[Sequence[Columns]]:
        return await self.run_read(lambda tables: cast(SqliteTables, tables).ask(statements))

    async def _ask_writer(
        self, statements: Sequence[tuple[str, Values]]
    ) -> Sequence[Sequence[Columns]]:
        return await self.run_write(lambda tables: cast(SqliteTables, tables).ask(statements))

    async def _open(self) -> None:
        check_host(is_file=self._opening.location.path is not None)
        engine = self._engines.setdefault(os.getpid(), _Engine.of(self._opening))
        waiting = object()
        engine.waiting.add(waiting)
        try:
            await _submit(engine.writer, _do_nothing)
            engine.is_open = True
        finally:
            engine.waiting.discard(waiting)
            if not engine.is_open and not engine.waiting:
                self._engines.clear()
                engine.stop()

    async def _close(self) -> None:
        engine = self._engines.pop(os.getpid(), None)
        self._engines.clear()
        if engine is not None:
            await asyncio.gather(*(job.future for job in engine.stop()))
        self._opening.kept.clear()

    def _engine(self) -> _Engine:
        engine = self._engines.get(os.getpid())
        if engine is not None and engine.is_open:
            return engine
        if engine is not None or not self._engines or self._opening.location.path is None:
            raise StateClosedError
        return self._engines.setdefault(os.getpid(), _Engine.of(self._opening, is_open=True))


@attrs.define(eq=False)
class _Engine:
    """The workers of one process.

    Attributes:
        is_open: Whether opening it has succeeded once.
        waiting: Who waits for it to open.
        is_stopped: Whether its workers were told to close.
        passages: Which reads need no worker.
    """

    writer: Worker
    reader: Worker
    is_open: bool = False
    waiting: set[object] = attrs.field(factory=set)
    is_stopped: bool = False
    passages: Passages = attrs.field(factory=Passages)

    @classmethod
    def of(cls, opening: Opening, *, is_open: bool = False) -> _Engine:
        """Make workers that open their connections when they get work."""
        is_file = opening.location.path is not None
        writer = Worker(
            "vitehub-chat-sqlite-writer",
            opening.open_writer,
            batch=WRITES_PER_COMMIT,
            survives_fork=is_file,
        )
        if not is_file:
            return cls(writer, writer, is_open=is_open)
        reader = Worker(
            "vitehub-chat-sqlite-reader",
            opening.open_reader,
            batch=READS_PER_ANSWER,
            survives_fork=True,
        )
        return cls(writer, reader, is_open=is_open)

    def stop(self) -> list[Job]:
        """Close the workers after what they still have to do, and return what tells the end."""
        jobs: list[Job] = []
        workers = [] if self.is_stopped else dict.fromkeys([self.reader, self.writer])
        self.is_stopped = True
        for worker in workers:
            jobs.append(new_job(None))
            worker.submit(jobs[-1])
        return jobs


def _is_small(needs: Needs) -> bool:
    """Tell whether a step reads a window of few rows, and nothing else."""
    window = needs.window
    if window is None or window.from_anchor:
        return False
    return window.limit + len(window.besides) <= LARGEST_WINDOW


async def _submit(worker: Worker, step: Callable[[Transaction], T]) -> T:
    job = new_job(step)
    worker.submit(job)
    answer: T = await job.future
    return answer


def _do_nothing(_tables: Transaction) -> None:
    """Let a worker open what it needs."""
