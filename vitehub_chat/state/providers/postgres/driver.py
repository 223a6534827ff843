"""The driver: SQL in a PostgreSQL database, one request per transaction."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.postgres.connections import Connector
from vitehub_chat.state.providers.postgres.exchanges import BrokenError
from vitehub_chat.state.providers.postgres.failures import AttemptError, of_losing, of_result
from vitehub_chat.state.providers.postgres.pools import Pool
from vitehub_chat.state.providers.postgres.rows import rows_of
from vitehub_chat.state.providers.postgres.statements import Command, command_of
from vitehub_chat.state.providers.postgres.target import Target
from vitehub_chat.state.sql.driver import Capabilities, Columns, Statement, Value
from vitehub_chat.state.sql.retrying import Retrying

_Pools = WeakKeyDictionary[asyncio.AbstractEventLoop, Pool]

ANSWER_SECONDS: Final = 10.0
"""How long the server may take to answer, besides the time it may wait for others."""

_READING: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ"
_WRITING: Final = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_LAZILY: Final[Command] = (b"SET LOCAL synchronous_commit = off", [])
_COMMIT: Final[Command] = (b"COMMIT", [])

_left_by_parents: Final[list[_Pools]] = []
"""Pools of the process this one was forked from; their sockets are its, so they stay open."""


class PostgresDriver:
    """SQL in a PostgreSQL database, for any number of tasks and event loops.

    Every batch is one transaction in one pipeline, from BEGIN to COMMIT, and leaves nothing on its
    connection, so that a pooler may give each to another one.

    **Isolation.** Batches that only read see one moment (REPEATABLE READ); they never wait for
    those that write, nor these for them. Batches that write are READ COMMITTED: every statement
    sees all that was committed before it began. They are as good as one after the other, because
    of how the state uses them, which is strict two-phase locking:

    - What a step can rely on has a row in the table of scopes that stands for it: a lock with its
      line, a conversation with its sessions, rows and open entries, a value, all values of a home,
      and a name of sessions in the scope where it is looked up.
    - The first statement (`writes.hold`) locks the rows of all that a batch relies on or changes,
      in the order of their keys, and makes those that are missing, which locks them as well:
      another one that makes the same waits for the unique index. They stay locked to the end.
    - A locked row is the newest one that was committed, so the same statement compares revisions,
      and raises them. What else the batch relies on is asserted by the next statement, which sees
      what was committed until then; who could change it would have to lock a row that is locked.
    - What does not hold is an integrity violation, which takes everything back.

    So of two batches that rely on one revision the second waits for the first, finds the revision
    raised, and is refused; the state looks again. A scope that is removed as idle meanwhile is
    made anew from the floor, which is above its revisions and cannot rise while that is done.

    One thing has no row: a claim that is free. A batch that relies on it and takes it is refused
    by a unique index if another one took it first. One that does not take it (the message was
    turned away, or everything is cleared) comes before one that does, in every order that can be
    told: to tell another one would take a batch that both took a claim and relied on another one
    being free, and a step asks for one claim at most.

    A unique violation is a `StateConflictError` like a condition that does not hold. Deadlocks are
    possible with what takes rows in another order (upkeep, claims); they are found by the server
    and repeated here.

    It is safe to repeat a batch whose COMMIT was not sent, or was answered with an error. What is
    lost with its answer is told apart by the note that the state leaves with each batch.
    """

    capabilities = Capabilities(dialect="postgres", has_server_clock=True)

    def __init__(
        self,
        target: Target,
        options: StateOptions,
        *,
        retrying: Retrying | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Make a driver for a database; it connects when it is first used.

        Args:
            target: Where it is.
            options: Password, durability, and how long to wait for others.
            retrying: How to wait before another attempt.
            answer_seconds: How long to wait for an answer, besides that.
        """
        self._connector = Connector(target, options)
        self._hide = target.hide_secrets
        self._patience = options.busy_timeout_ms / 1000
        self._answer_seconds = answer_seconds + self._patience
        self._settings: list[Command] = [
            (b"SET LOCAL lock_timeout = %d" % options.busy_timeout_ms, [])
        ]
        if options.durability == "normal":
            self._settings.append(_LAZILY)
        self._retrying = Retrying() if retrying is None else retrying
        self._pid = os.getpid()
        self._pools: _Pools = WeakKeyDictionary()

    async def execute(self, sql: str, named: Mapping[str, Value], /) -> Sequence[Columns]:
        """Run one statement and return its rows.

        Raises:
            StateConflictError: A constraint refused it.
            StateUnavailableError: There was no answer; see its outcome.
            StateError: The server refuses what was asked.
            ConfigError: The server refuses the user.
        """
        return (await self.batch([(sql, named)]))[0]

    async def batch(self, statements: Sequence[Statement], /) -> Sequence[Sequence[Columns]]:
        """Run statements in one transaction and return the rows of each; all or nothing.

        It goes on when the caller is cancelled. What was certainly not done is repeated for as
        long as others may keep a write waiting.

        Raises:
            ChatError: As `execute`.
        """
        if not statements:
            return []
        commands = [command_of(text, named) for text, named in statements]
        reads = all(text.startswith("SELECT") for text, _ in statements)
        time = asyncio.get_running_loop().time
        deadline = time() + self._patience
        number = 0
        while True:
            number += 1
            try:
                return await self._attempt(commands, reads=reads)
            except AttemptError as failure:
                error = failure.error
                if not failure.may_repeat or time() >= deadline:
                    break
            await self._retrying.after_failure(number)
        raise error  # outside of the handler, or it would carry the original error

    async def aclose(self) -> None:
        """Close the connections, those that are in use when they are done.

        Repeating does nothing, using it again connects again.
        """
        running = asyncio.get_running_loop()
        pools = self._own_pools()
        for loop, pool in list(pools.items()):
            del pools[loop]
            if loop.is_closed():
                pool.abort()
            elif loop is running or not loop.is_running():
                pool.close()
            else:
                loop.call_soon_threadsafe(pool.close)

    async def _attempt(
        self, commands: Sequence[Command], *, reads: bool
    ) -> Sequence[Sequence[Columns]]:
        begin: Command = (_READING if reads else _WRITING, [])
        before = [begin, *self._settings]
        pool = await self._pool()
        failure = None
        try:
            results = await pool.run([*before, *commands, _COMMIT], self._answer_seconds)
        except BrokenError as error:
            failure = self._failure_of(error, len(before) + len(commands), reads=reads)
        if failure is not None:
            raise failure
        found = results[len(before) : -1]  # pyright: ignore[reportPossiblyUnboundVariable]
        return [rows_of(result) for result in found]

    def _failure_of(self, error: BrokenError, end: int, *, reads: bool) -> AttemptError:
        if error.refusal is None:
            return of_losing(error.loss, self._hide, may_be_written=not reads)
        at_end = error.place == end and not reads
        return of_result(error.refusal, self._hide, at_end=at_end)

    async def _pool(self) -> Pool:
        """Return the pool of the running loop."""
        pools, loop = self._own_pools(), asyncio.get_running_loop()
        pool = pools.get(loop)
        if pool is None or pool.is_closed:
            for other in [each for each in pools if each.is_closed()]:
                pools.pop(other).abort()
            pool = pools[loop] = Pool(self._connector.connect)
            await pool.start()
        return pool

    def _own_pools(self) -> _Pools:
        """Return the pools of this process."""
        if self._pid != os.getpid():
            _left_by_parents.append(self._pools)
            self._pid, self._pools = os.getpid(), WeakKeyDictionary()
        return self._pools
