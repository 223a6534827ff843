"""Handles: what a worker does with its connection."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from vitehub_chat.errors import ChatError
from vitehub_chat.state.jobs import Job
from vitehub_chat.state.providers.postgres.link import READING, WRITING, Link
from vitehub_chat.state.providers.postgres.schema import Preparation
from vitehub_chat.state.providers.postgres.upkeep import Upkeep


class Reader:
    """Runs jobs that see one moment of the store and write nothing."""

    begins: Sequence[str] = READING
    is_repeatable = True

    def __init__(self, link: Link, preparation: Preparation, upkeep: Upkeep) -> None:
        self._link = link
        self._preparation = preparation
        self._upkeep = upkeep

    def run(self, job: Job, /) -> None:
        """Run a job in a transaction of its own."""
        try:
            self._preparation.ensure(self._link)
            self._link.transact(self.begins, job.run, is_repeatable=self.is_repeatable)
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            job.fail(error)

    def tidy(self) -> bool:
        """Ask for the time now and then."""
        with contextlib.suppress(ChatError):
            self._upkeep.ask_for_time(self._link)
        return False

    def close(self) -> None:
        """Close the connection."""
        self._link.close()


class Writer(Reader):
    """Runs jobs that write, and removes what is over."""

    begins = WRITING
    is_repeatable = False

    def tidy(self) -> bool:
        """Remove a slice of what is over."""
        super().tidy()
        return self._upkeep.run_slice(self._link)
