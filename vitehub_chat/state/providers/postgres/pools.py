"""Pools: the connections of one event loop, each made when it is needed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final

import psycopg
from psycopg.pq import ConnStatus
from psycopg.pq.abc import PGresult

from vitehub_chat.state.providers.postgres.exchanges import Exchange
from vitehub_chat.state.providers.postgres.statements import Command

MOST: Final = 8
"""How many connections one event loop has at most."""


class Pool:
    """Connections that are used by one event loop alone, so that nothing has to be locked.

    Who needs one when all are busy waits, first come first served. What cannot connect says so at
    once, to who needs the connection.

    Attributes:
        is_closed: Whether it was closed, or its loop has ended.
    """

    def __init__(self, connect: Callable[[], Awaitable[psycopg.AsyncConnection]]) -> None:
        """Make an empty one."""
        self.is_closed = False
        self._pid = os.getpid()
        self._connect = connect
        self._free = asyncio.Semaphore(MOST)
        self._idle: list[psycopg.AsyncConnection] = []
        self._busy: dict[psycopg.AsyncConnection, Exchange] = {}
        self._ending = self._wait_for_end()

    async def start(self) -> None:
        """Close it when the running loop shuts down."""
        await anext(self._ending)

    async def run(self, commands: Sequence[Command], seconds: float) -> Sequence[PGresult]:
        """Send a transaction and return its results, one of each statement.

        When who waits is cancelled the transaction goes on.

        Raises:
            AttemptError: There is no connection.
            BrokenError: A statement was refused, or the connection was lost.
        """
        await self._free.acquire()
        try:
            connection = self._take() or await self._open()
        except BaseException:
            self._free.release()
            raise
        exchange = Exchange(connection.pgconn, lambda: self._give_back(connection))
        self._busy[connection] = exchange
        exchange.start(commands, seconds)
        return await exchange.answer

    def close(self) -> None:
        """Close all connections, busy ones when they are done; a forked process closes none."""
        self.is_closed = True
        if self._pid != os.getpid():
            return
        for connection in self._idle:
            connection.pgconn.finish()
        self._idle.clear()

    def abort(self) -> None:
        """Close all connections now; a forked process closes none."""
        self.close()
        if self._pid == os.getpid():
            for exchange in list(self._busy.values()):
                exchange.lose("the event loop has ended")

    def _take(self) -> psycopg.AsyncConnection | None:
        """Return the connection that was used last and that the server has not closed."""
        while self._idle:
            connection = self._idle.pop()
            if _is_alive(connection):
                return connection
            connection.pgconn.finish()
        return None

    async def _open(self) -> psycopg.AsyncConnection:
        connection = await self._connect()
        connection.pgconn.nonblocking = 1
        connection.pgconn.enter_pipeline_mode()
        return connection

    def _give_back(self, connection: psycopg.AsyncConnection) -> None:
        del self._busy[connection]
        if connection.pgconn.status == ConnStatus.OK and not self.is_closed:
            self._idle.append(connection)
        else:
            connection.pgconn.finish()
        self._free.release()

    async def _wait_for_end(self) -> AsyncGenerator[None]:
        # A loop that shuts down closes the asynchronous generators that were started in it.
        try:
            yield
        finally:
            self.abort()


def _is_alive(connection: psycopg.AsyncConnection) -> bool:
    try:
        # A server that ends says so before it closes the connection, which is one thing to read.
        connection.pgconn.consume_input()
        connection.pgconn.consume_input()
    except psycopg.Error:
        return False
    return connection.pgconn.status == ConnStatus.OK
