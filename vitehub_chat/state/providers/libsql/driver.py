"""The driver: SQL on a remote libSQL server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from vitehub_chat.state.providers.libsql.address import Address
from vitehub_chat.state.providers.libsql.answers import Rows
from vitehub_chat.state.providers.libsql.client import HranaClient
from vitehub_chat.state.providers.libsql.jobs import Batch, new_job
from vitehub_chat.state.providers.libsql.lane import Lane, lane_for
from vitehub_chat.state.providers.libsql.limits import CAPABILITIES, Limits
from vitehub_chat.state.providers.libsql.retries import repeat
from vitehub_chat.state.providers.libsql.statements import encode_statement, shape_of
from vitehub_chat.state.providers.libsql.tokens import TokenSource
from vitehub_chat.state.sql.driver import Capabilities, Statement, Value


class LibsqlDriver:
    """SQL on a remote libSQL server, for any number of tasks and event loops.

    What certainly only reads runs beside everything else. Writes go one after the other, and those
    that wait share a request, each undone alone if it fails. Nothing is sent before the first
    call.
    """

    def __init__(
        self, address: Address, *, tokens: TokenSource, limits: Limits | None = None
    ) -> None:
        """Make a driver for a server.

        Args:
            address: Where it is.
            tokens: What it is shown.
            limits: How long to wait, and how much to send at once.
        """
        self._address = address
        self._limits = Limits() if limits is None else limits
        self._client = HranaClient(address, tokens, self._limits)
        self._waiting: set[asyncio.Future[list[Rows]]] = set()
        self._shared = (os.getpid(), lane_for(address.base_url))

    @property
    def capabilities(self) -> Capabilities:
        """What the database is."""
        return CAPABILITIES

    async def execute(
        self, sql: str, named: Mapping[str, Value], /, *, idempotent: bool = False
    ) -> Rows:
        """Run one statement and return its rows.

        Args:
            sql: The statement, with parameters as `:name`.
            named: Their values; what the statement does not name is left away.
            idempotent: Whether running it twice is as good as once, so that it may be repeated
                when it may have been run.

        Raises:
            StateConflictError: A constraint refused it.
            StateUnavailableError: No answer that says what was done; see its outcome.
            ConfigError: The server does not accept the token, or is no libSQL server.
            StateError: The server refused the statement, or it is too large.
        """
        return (await self.batch([(sql, named)], idempotent=idempotent))[0]

    async def batch(
        self, statements: Sequence[Statement], /, *, idempotent: bool = False
    ) -> list[Rows]:
        """Run statements in one transaction and return the rows of each; all or nothing.

        Cancelling the caller does not undo what was sent. No statements do nothing.

        Raises:
            StateError: As `execute`; nothing was written, unless the outcome says `unknown`.
            ConfigError: As `execute`.
        """
        if not statements:
            return []
        encoded = [encode_statement(sql, named) for sql, named in statements]
        if all(shape_of(sql).reads for sql, _ in statements):
            return await self._read(encoded)
        return await self._write(encoded, idempotent=idempotent)

    async def aclose(self) -> None:
        """Wait for the writes of this event loop, then give connections up.

        Repeating does nothing; using it again connects again.
        """
        loop = asyncio.get_running_loop()
        mine = [future for future in self._waiting if future.get_loop() is loop]
        if mine:
            await asyncio.wait(mine)
        await self._lane().settle(self._client)
        await self._client.aclose()

    async def _read(self, batch: Batch) -> list[Rows]:
        position = self._lane().position

        async def attempt() -> list[Rows]:
            rows, index = await self._client.read(batch, position.wanted())
            position.note_read(index)
            return rows

        return await repeat(attempt, seconds=self._limits.retry, writes=False, idempotent=True)

    async def _write(self, batch: Batch, *, idempotent: bool) -> list[Rows]:
        lane = self._lane()

        async def attempt() -> list[Rows]:
            job = new_job(self._client, batch)
            self._waiting.add(job.future)
            job.future.add_done_callback(self._waiting.discard)
            return await lane.run(job, self._limits)

        return await repeat(attempt, seconds=self._limits.retry, writes=True, idempotent=idempotent)

    def _lane(self) -> Lane:
        """Return the lane of this process, another one after a fork."""
        if self._shared[0] != os.getpid():
            self._shared = (os.getpid(), lane_for(self._address.base_url))
        return self._shared[1]
