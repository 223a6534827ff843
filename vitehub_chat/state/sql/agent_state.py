"""The Agent State of SQL databases that are reached by requests.

Every call is one request when nothing has changed since this process last looked, and one more to
look. There are no transactions that stay open between two requests; what a transaction would
promise comes from this:

**Scopes.** Everything a step can read belongs to a lock with its line, to a conversation, or is a
lookup of one row through an index. Locks and conversations have a revision each, and whatever
changes them raises it in the same batch.

**Guards.** A step runs on what is known here, in tables of this process (`scratch`). Its write is
one batch, whose first statement asserts all the step relied on: the revision of every scope it
read, and the outcome of every lookup. If any of it has changed, a constraint refuses the batch, all
is fetched anew, in one batch and so at one moment, and the step runs again. So every write happens
as if its step had run alone, at the moment of its batch. An answer that writes nothing, an error
among them, is given only if everything it relies on was fetched at one moment during the call.

**Misses.** What a step asks for and nobody fetched raises `Miss`: it is fetched with the rest, and
the step runs again. What is fetched first is a guess (`guessing`), on which nothing else depends.

**Writes without an answer.** The first statement of a batch also leaves a note of it, under a
random name. When the answer to a batch is lost, the state is fetched anew together with the note:

- The note is there: the batch has happened, whatever others did since; the answer computed for it
  is returned, and nothing is sent again.
- It is not there: the batch may still be under way. Whatever is sent now, a write of the step run
  anew or, if that has nothing to write or raised, an empty one, asserts and raises all scopes that
  the lost batch relied on. Of the two only one can happen: both assert the same revisions, and the
  first one raises them for good. If the lost batch was first, the new one is refused, and the note
  is found then.

A driver that repeats a batch by itself is covered, too: if the first attempt went through, the
second is refused, and the note is found.

**Tokens.** A fencing token begins with the next revision of its lock's scope, which outlives the
lock; the rest is random. Scopes of locks that nobody wanted for an hour are deleted; the
revision of every scope that is not there is one floor, which is above all that were deleted. So
neither tokens nor revisions ever come again.

**The cache** keeps what this process wrote or fetched last. Only writes go on from it, and a write
that goes on from something old is refused like any other.

Other programs must not write to the same tables without raising the scopes; the providers of files
do not, so one store is for one of them at a time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Sequence
from typing import Any, Final, TypeVar

from vitehub_chat.errors import StateClosedError
from vitehub_chat.model.clock import Clock, SystemClock, to_epoch_us
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.sql.attempts import Workshop
from vitehub_chat.state.sql.cache import Cache
from vitehub_chat.state.sql.columns import as_values
from vitehub_chat.state.sql.driver import SqlDriver
from vitehub_chat.state.sql.engine import Engine
from vitehub_chat.state.sql.lines import Lines
from vitehub_chat.state.sql.loading import Loader
from vitehub_chat.state.sql.mapping import Columns, Values
from vitehub_chat.state.sql.numbers import Numbers
from vitehub_chat.state.sql.reads import read
from vitehub_chat.state.sql.request_keeping import RequestKeeper
from vitehub_chat.state.sql.retrying import Retrying
from vitehub_chat.state.sql.schema import drop_schema, open_schema, read_versions
from vitehub_chat.state.sql.seeking import SqlSeeker
from vitehub_chat.state.sql.server_clock import ServerClock
from vitehub_chat.state.sql.texts import Texts, check_dialect, load_texts
from vitehub_chat.state.sql.upkeep import Upkeep
from vitehub_chat.state.stepped import Step, SteppedAgentState

T = TypeVar("T")

_SYSTEMS: Final = {"postgres": "postgresql"}
"""How telemetry calls what speaks a dialect, where that is not the name of the dialect."""
_SLICES_AT_OPEN: Final = 5
"""How often some of what is over is removed at once, if there is so much."""


class SqlAgentState(SteppedAgentState):
    """An Agent State over a driver; see the module for how.

    Any number of tasks and event loops may use it. A write that has begun goes on when nobody
    waits for it any more.

    Attributes:
        options: What it was opened with.
    """

    def __init__(
        self,
        driver: SqlDriver,
        *,
        clock: Clock | None = None,
        options: StateOptions | None = None,
        retrying: Retrying | None = None,
    ) -> None:
        """Create a closed state.

        Args:
            driver: The database; it is closed with the state.
            clock: The source of the time. None and the clock of the machine follow that of the
                server, if the driver says so; any other one is taken as it is.
            options: Those of `StateOptions` that are not about a connection.
            retrying: How often requests are made again.

        Raises:
            ConfigError: There are no statements for the dialect of the driver.
        """
        check_dialect(driver.capabilities.dialect)
        self.options = StateOptions() if options is None else options
        follows = driver.capabilities.has_server_clock and (
            clock is None or isinstance(clock, SystemClock)
        )
        local = SystemClock() if clock is None else clock
        server_clock = ServerClock(local) if follows else None
        super().__init__(
            clock=server_clock or local,
            features=_features_of(driver, server_time=follows),
            retention=self.options.retention,
            seeker=SqlSeeker(self._ask_alone, self._ask_alone) if self.options.search else None,
        )
        dialect = driver.capabilities.dialect
        self.system = _SYSTEMS.get(dialect, dialect)
        self._driver = driver
        self._server_clock = server_clock
        self._retrying = Retrying() if retrying is None else retrying
        self._opening = Lines()
        self._engine: Engine | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self.keeper = RequestKeeper(self._ask, self._find_versions, self.clock)

    async def run_write(self, step: Step[T], /) -> T:
        """Run a step in one transaction; when it raises nothing is written.

        It goes on when nobody waits for it any more, and runs again from the start when somebody
        else was faster.
        """
        return await self.write_with(step, Needs(now=to_epoch_us(self.clock.now())))

    async def run_read(self, step: Step[T], /) -> T:
        """Run a step that writes nothing on one consistent view."""
        return await self.read_with(step, Needs(now=to_epoch_us(self.clock.now())))

    async def write_with(self, step: Step[T], needs: Needs, /) -> T:
        """Run a step like `run_write`, told what it will probably look at."""
        engine = self._open_engine()
        if self._server_clock is not None:
            await self._server_clock.measure_if_due(self._driver, engine.shop.texts)
        return await self._unbroken(engine.write(step, needs))

    async def read_with(self, step: Step[T], needs: Needs, /) -> T:
        """Run a step like `run_read`, told what it will probably look at."""
        return await read(self._open_engine().shop, step, needs)

    async def drop(self) -> None:
        """Delete the tables of this prefix from the database, then close it."""
        engine = self._open_engine()
        await self._unbroken(drop_schema(engine.shop.loader, engine.shop.texts))
        await self.aclose()

    async def _ask(self, statements: Sequence[tuple[str, Values]]) -> Sequence[Sequence[Columns]]:
        """Run named statements in one transaction that no step is in."""
        answers = await self._ask_alone(statements)
        self._open_engine().shop.cache.clear()
        return answers

    async def _ask_alone(
        self, statements: Sequence[tuple[str, Values]]
    ) -> Sequence[Sequence[Columns]]:
        """Run named statements like `_ask`; they change nothing that a step looks at."""
        shop = self._open_engine().shop
        asked = [(shop.texts[name], as_values(values)) for name, values in statements]
        answers = await self._unbroken(shop.loader.ask(asked))
        return [[tuple(row) for row in rows] for rows in answers]

    async def _find_versions(self) -> tuple[int, int]:
        dialect, prefix = self._driver.capabilities.dialect, self.options.table_prefix
        texts = await asyncio.to_thread(load_texts, dialect, prefix)
        try:
            loader = Loader(self._driver, Numbers(), self._retrying)
            return await self._unbroken(read_versions(loader, texts))
        finally:
            if self._engine is None:
                await self._unbroken(self._driver.aclose())

    async def _open(self) -> None:
        async with self._opening.hold(""):
            if self._engine is not None:
                return
            try:
                self._engine = await self._make_engine()
            finally:
                if self._engine is None:
                    await self._unbroken(self._driver.aclose())

    async def _close(self) -> None:
        self._engine = None
        loop = asyncio.get_running_loop()
        mine = [task for task in self._tasks if task.get_loop() is loop]
        if mine:
            await asyncio.wait(mine)
        await self._unbroken(self._driver.aclose())

    async def _make_engine(self) -> Engine:
        dialect, prefix = self._driver.capabilities.dialect, self.options.table_prefix
        texts = await asyncio.to_thread(load_texts, dialect, prefix)
        loader = Loader(self._driver, Numbers(), self._retrying)
        if self._server_clock is not None:
            await self._server_clock.measure(self._driver, texts)
        secret = await open_schema(loader, texts, self.clock, may_migrate=self.options.migrate)
        engine = self._engine_of(texts, secret)
        if self.retention == "forever":
            await engine.upkeep.keep_forever()
        for _ in range(_SLICES_AT_OPEN):
            await engine.upkeep.clean_if_due()
        return engine

    def _engine_of(self, texts: Texts, secret: bytes) -> Engine:
        numbers = Numbers()
        loader = Loader(self._driver, numbers, self._retrying)
        shop = Workshop(
            driver=self._driver,
            clock=self.clock,
            texts=texts,
            secret=secret,
            loader=loader,
            cache=Cache(),
            numbers=numbers,
            retrying=self._retrying,
            is_searched=self.options.search,
        )
        interval = self.options.cleanup_interval_ms * 1000
        return Engine(
            pid=os.getpid(),
            shop=shop,
            lines=Lines(),
            upkeep=Upkeep(loader, texts, self.clock, interval),
        )

    def _open_engine(self) -> Engine:
        engine = self._engine
        if engine is None:
            raise StateClosedError(hint="use it inside of 'async with state'")
        if engine.pid != os.getpid():
            # What a parent process keeps, numbers above all, is not for a fork of it.
            engine = self._engine = self._engine_of(engine.shop.texts, engine.shop.secret)
        return engine

    async def _unbroken(self, call: Coroutine[Any, Any, T]) -> T:
        """Wait for a call that goes on to its end when this waiting is cancelled."""
        task = asyncio.ensure_future(call)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        await asyncio.wait({task})
        return task.result()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        # Raised where it is waited for; if nobody does, nobody is there to be told.
        _ = task.cancelled() or task.exception()


def _features_of(driver: SqlDriver, *, server_time: bool) -> frozenset[str]:
    capabilities = driver.capabilities
    features = {
        "durable": capabilities.is_durable,
        "shared": capabilities.is_shared,
        "server_time": server_time,
    }
    return frozenset(name for name, is_given in features.items() if is_given)
