"""Jobs of SQLite workers: an error of the database reaches who waits as one of this package."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any

import attrs

from vitehub_chat.state import jobs
from vitehub_chat.state.providers.sqlite.failures import wrap_failure
from vitehub_chat.state.tables import Transaction


@attrs.define(eq=False)
class Job(jobs.Job):
    """A step that somebody waits for on an event loop."""

    def fail(self, error: BaseException) -> None:
        """Keep an error in place of an answer."""
        if isinstance(error, sqlite3.Error | OSError):
            error = wrap_failure(error)
        super().fail(error)


def new_job(step: Callable[[Transaction], Any] | None) -> Job:
    """Return a job of the running loop."""
    loop = asyncio.get_running_loop()
    return Job(step, loop, loop.create_future())
