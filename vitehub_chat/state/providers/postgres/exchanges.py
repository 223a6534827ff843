"""Exchanges: a transaction that is sent at once and answered at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import psycopg
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from vitehub_chat.state.providers.postgres.statements import Command

_ERRORS: Final = frozenset({ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE})
_ROLLBACK: Final[Command] = (b"ROLLBACK", [])


class BrokenError(Exception):
    """A transaction was not answered to its end.

    Attributes:
        place: Which statement was answered last, from 0; -1 for none.
        refusal: The error that the server gave for it, or None.
        loss: Why there is no more answer, or None if the server has taken everything back.
    """

    def __init__(
        self, place: int, refusal: PGresult | None, loss: psycopg.Error | None = None
    ) -> None:
        super().__init__("lost" if refusal is None else "refused")
        self.place = place
        self.refusal = refusal
        self.loss = loss


class Exchange:
    """A transaction on its way to the server, in one pipeline with its COMMIT, and back.

    It goes on to its end whether somebody waits for the answer or not, so that the connection
    serves others afterwards.

    Attributes:
        answer: The results, one of each statement; or `BrokenError`.
    """

    def __init__(self, pgconn: PGconn, at_end: Callable[[], None]) -> None:
        """Prepare one on a connection in pipeline mode; `at_end` is called when it is free."""
        self._pgconn = pgconn
        self._socket = pgconn.socket  # a connection that is lost does not tell any more
        self._at_end = at_end
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Sequence[PGresult]] = self._loop.create_future()
        self._results: list[PGresult] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_sending = False

    def start(self, commands: Sequence[Command], seconds: float) -> None:
        """Send everything, and wait so long for the answer to it."""
        self._timer = self._loop.call_later(seconds, self.lose, "the server does not answer")
        self._loop.add_reader(self._socket, self._on_ready)
        try:
            self._send(commands)
        except psycopg.Error as error:
            self._lose(error)

    def lose(self, why: str) -> None:
        """Close the connection without an answer."""
        if self._loop.is_closed():
            self._pgconn.finish()
        else:
            self._lose(psycopg.OperationalError(why))

    def _send(self, commands: Sequence[Command]) -> None:
        for text, values in commands:
            self._pgconn.send_query_params(text, values)
        self._pgconn.pipeline_sync()
        self._flush()

    def _flush(self) -> None:
        is_left = bool(self._pgconn.flush())
        if is_left and not self._is_sending:
            self._loop.add_writer(self._socket, self._on_ready)
        elif self._is_sending and not is_left:
            self._loop.remove_writer(self._socket)
        self._is_sending = is_left

    def _on_ready(self) -> None:
        try:
            # Also while there is more to send: a server that cannot answer takes no more.
            self._pgconn.consume_input()
            if self._is_sending:
                self._flush()
            self._read()
        except psycopg.Error as error:
            self._lose(error)

    def _read(self) -> None:
        while not self._pgconn.is_busy():
            result = self._pgconn.get_result()
            if result is None:
                if self._pgconn.status != ConnStatus.OK:
                    raise psycopg.OperationalError(_message_of(self._pgconn))
            elif result.status == ExecStatus.PIPELINE_SYNC:
                self._settle()
                return
            else:
                self._results.append(result)

    def _settle(self) -> None:
        """Hand over the answer, and leave no transaction open."""
        if not self.answer.done():
            place, refusal = self._refusal()
            if refusal is None:
                self.answer.set_result(self._results)
            else:
                self.answer.set_exception(BrokenError(place, refusal))
        if self._pgconn.transaction_status == TransactionStatus.IDLE:
            self._end()
        else:
            self._send([_ROLLBACK])

    def _lose(self, error: psycopg.Error) -> None:
        place, refusal = self._refusal()
        if not self.answer.done():
            self.answer.set_exception(BrokenError(place, refusal, error))
        self._end(is_lost=True)

    def _refusal(self) -> tuple[int, PGresult | None]:
        """Return the place of the statement that was refused, or of the last one answered."""
        for place, result in enumerate(self._results):
            if result.status in _ERRORS:
                return place, result
        return len(self._results) - 1, None

    def _end(self, *, is_lost: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._is_sending:
            self._loop.remove_writer(self._socket)
        self._loop.remove_reader(self._socket)
        if is_lost:
            self._pgconn.finish()
        self._at_end()


def _message_of(pgconn: PGconn) -> str:
    return pgconn.error_message.decode(errors="replace")
