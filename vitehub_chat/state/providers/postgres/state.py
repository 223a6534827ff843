"""The PostgreSQL provider: an Agent State that many processes share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from vitehub_chat.errors import ConfigError, StateClosedError
from vitehub_chat.model.clock import Clock, SystemClock
from vitehub_chat.state.jobs import new_job
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.postgres.connections import Connector
from vitehub_chat.state.providers.postgres.engine import Engine
from vitehub_chat.state.providers.postgres.tables import PostgresTables
from vitehub_chat.state.providers.postgres.target import parse_target
from vitehub_chat.state.providers.postgres.times import ServerClock
from vitehub_chat.state.providers.postgres.workers import Workers
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.state.tables import Transaction

T = TypeVar("T")

_FEATURES: Final = frozenset({"durable", "shared", "server_time"})

_left_by_parents: Final[list[Engine]] = []
"""Engines of the process this one was forked from; their sockets are its, so they stay open."""


def open_postgres(url: str, *, clock: Clock | None = None, **options: Any) -> PostgresAgentState:
    """Return the Agent State in a PostgreSQL database, version 13 or newer.

    `async with` opens it. The URL is that of libpq, `postgresql://USER:PASSWORD@HOST/DATABASE`,
    with its parameters, such as those for TLS. A connection is given up after 5 seconds, unless
    the URL has another `connect_timeout`.

    Args:
        url: The URL.
        clock: The source of the time. None and the clock of the machine follow that of the
            server; any other one is taken as it is.
        options: The options of `StateOptions`. `auth_token` is the password, where the URL has
            none. `durability="normal"` does not wait for the disk of the server, `"full"` leaves
            it to the server's `synchronous_commit`. `busy_timeout_ms` is how long a write waits
            for others, and how long what can be repeated is repeated.

    Raises:
        ConfigError: The URL or an option is wrong.
    """
    checked = StateOptions.from_mapping(options)
    target = parse_target(url)
    if target.password is not None and (checked.auth_token or checked.auth_token_env):
        raise ConfigError(
            "is given beside a password in the URL; keep one",
            path="state.auth_token",
            code="invalid_option",
        )
    return PostgresAgentState(Connector(target, checked), clock=clock or SystemClock())


class PostgresAgentState(SteppedAgentState):
    """An Agent State in a PostgreSQL database.

    A few threads write and a few read; they serve any number of tasks, event loops and threads. A
    process that is forked goes on with threads and connections of its own.

    Attributes:
        options: What it was opened with.
    """

    def __init__(self, connector: Connector, *, clock: Clock) -> None:
        options = connector.options
        super().__init__(
            clock=ServerClock(clock) if isinstance(clock, SystemClock) else clock,
            features=_FEATURES,
            retention=options.retention,
        )
        self.options = options
        self._connector = connector
        self._engines: dict[int, Engine] = {}

    async def run_write(self, step: Callable[[Transaction], T], /) -> T:
        """Run a step in one transaction; when it raises nothing is written.

        It runs also when nobody waits for it any more, and again from the start when another
        transaction was first.
        """
        return await _submit(self._engine().writers, step)

    async def run_read(self, step: Callable[[Transaction], T], /) -> T:
        """Run a step that writes nothing on one consistent view."""
        return await _submit(self._engine().readers, step)

    async def drop(self) -> None:
        """Delete the tables of this prefix from the database, then close it."""
        await self.run_write(lambda tables: cast(PostgresTables, tables).drop())
        await self.aclose()

    async def _open(self) -> None:
        engine = self._engines.setdefault(os.getpid(), Engine(self._connector, self.clock))
        waiting = object()
        engine.waiting.add(waiting)
        try:
            await _submit(engine.writers, _do_nothing)
            engine.is_open = True
        finally:
            engine.waiting.discard(waiting)
            if not engine.is_open and not engine.waiting:
                self._forget_engines()
                engine.stop()

    async def _close(self) -> None:
        engine = self._engines.get(os.getpid())
        self._forget_engines()
        if engine is not None:
            await asyncio.gather(*(job.future for job in engine.stop()))

    def _engine(self) -> Engine:
        engine = self._engines.get(os.getpid())
        if engine is not None and engine.is_open:
            return engine
        if engine is not None or not self._engines:
            raise StateClosedError
        made = Engine(self._connector, self.clock, is_open=True)
        return self._engines.setdefault(os.getpid(), made)

    def _forget_engines(self) -> None:
        self._engines.pop(os.getpid(), None)
        _left_by_parents.extend(self._engines.values())
        self._engines.clear()


async def _submit(workers: Workers, step: Callable[[Transaction], T]) -> T:
    job = new_job(step)
    workers.submit(job)
    answer: T = await job.future
    return answer


def _do_nothing(_tables: Transaction) -> None:
    """Let a worker connect and prepare what it needs."""
