"""The engine: the workers of one process, and what they have in common."""

from __future__ import annotations

from typing import Final

from vitehub_chat.model.clock import Clock
from vitehub_chat.state.jobs import Job, new_job
from vitehub_chat.state.providers.postgres.connections import Connector
from vitehub_chat.state.providers.postgres.handles import Reader, Writer
from vitehub_chat.state.providers.postgres.link import Link
from vitehub_chat.state.providers.postgres.schema import Preparation
from vitehub_chat.state.providers.postgres.upkeep import Upkeep
from vitehub_chat.state.providers.postgres.workers import Workers

MOST_WRITERS: Final = 2
MOST_READERS: Final = 4
"""How many connections of each kind one process has at most; each is made when it is needed."""


class Engine:
    """The workers of one process.

    Attributes:
        writers: They run steps that write.
        readers: They run steps that only read.
        is_open: Whether opening it has succeeded once.
        waiting: Who waits for it to open.
    """

    def __init__(self, connector: Connector, clock: Clock, *, is_open: bool = False) -> None:
        options = connector.options
        preparation = Preparation(options, clock, is_done=is_open)
        upkeep = Upkeep(clock, options.cleanup_interval_ms)
        self.is_open = is_open
        self.waiting: set[object] = set()
        self._is_stopped = False
        self.writers = Workers(
            "vitehub-chat-postgres-writer",
            lambda: Writer(Link(connector), preparation, upkeep),
            most=MOST_WRITERS,
        )
        self.readers = Workers(
            "vitehub-chat-postgres-reader",
            lambda: Reader(Link(connector), preparation, upkeep),
            most=MOST_READERS,
        )

    def stop(self) -> list[Job]:
        """Close the workers after what they still have to do, and return what tells the end."""
        jobs: list[Job] = []
        workers = [] if self._is_stopped else [self.readers, self.writers]
        self._is_stopped = True
        for each in workers:
            jobs.append(new_job(None))
            each.submit(jobs[-1])
        return jobs
