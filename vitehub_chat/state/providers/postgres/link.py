"""Links: a connection that is made when it is needed, and again when it was lost."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import attrs
import psycopg
from psycopg.pq import TransactionStatus

from vitehub_chat.errors import ChatError, StateError
from vitehub_chat.model.ids import pick
from vitehub_chat.state.providers.postgres.connections import Connector
from vitehub_chat.state.providers.postgres.failures import (
    DUPLICATES,
    is_lost,
    is_uncertain,
    may_pass,
    wrap_failure,
    wrap_uncertain,
)
from vitehub_chat.state.providers.postgres.statements import Statements, load_texts
from vitehub_chat.state.providers.postgres.tables import PostgresTables
from vitehub_chat.state.sql.mapping import Columns

T = TypeVar("T")
Work = Callable[[PostgresTables], T]

READING: Final = ("begin_reading",)
UPKEEP: Final = ("begin_upkeep",)
WRITING: Final = ("begin", "begin_alone")
"""How the attempts at a transaction begin; the last one is for all that follow."""

_SHORTEST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0
_MOST_DOUBLINGS: Final = 10
_TRIES_AT_DUPLICATES: Final = 3
_PARTS: Final = range(1001)


def full_jitter(longest: float) -> float:
    """Return a pause of any length up to the longest, by chance."""
    return longest * pick(_PARTS) / _PARTS[-1]


@attrs.frozen
class _Open:
    """What belongs to an open connection."""

    connection: psycopg.Connection[Columns]
    cursor: psycopg.Cursor[Columns]
    tables: PostgresTables


class Link:
    """One connection and its transactions; used by one thread at a time.

    What fails before its commit was not written. So it is tried again, for as long as others may
    keep a write waiting: when the connection was lost, and when another transaction was first. A
    commit without an answer is left alone, because what was written may be there.
    """

    def __init__(
        self, connector: Connector, *, jitter: Callable[[float], float] = full_jitter
    ) -> None:
        """Make a link that is not connected yet; `jitter` makes a pause of the longest one."""
        options = connector.options
        self._connector = connector
        self._hide = connector.target.hide_secrets
        self._texts = load_texts(options.table_prefix)
        self._patience_ms = options.busy_timeout_ms
        self._is_lazy = options.durability == "normal"
        self._jitter = jitter
        self._open: _Open | None = None

    def transact(self, begins: Sequence[str], work: Work[T], *, is_repeatable: bool = False) -> T:
        """Do work in one transaction and return its answer; when it raises nothing is written.

        Args:
            begins: How the attempts begin.
            work: What to do; it may be done again from the start.
            is_repeatable: Whether it does no harm to write it twice.

        Raises:
            StateUnavailableError: There was no connection, or no end of conflicts.
            StateError: The server refuses what was asked.
            ConfigError: The server refuses the user.
        """
        deadline = time.monotonic() + self._patience_ms / 1000
        for number in itertools.count():
            begin = begins[min(number, len(begins) - 1)]
            try:
                return self.attempt(begin, work, is_repeatable=is_repeatable)
            except psycopg.Error as error:
                failure = self._wait(error, number, deadline)
            if failure is not None:
                raise failure  # outside of the handler, or it would carry the original error
        raise AssertionError("numbers do not end")

    def attempt(self, begin: str, work: Work[T], *, is_repeatable: bool = False) -> T:
        """Do work in one transaction, once; errors of the driver are passed on as they are."""
        opened = self._opened()
        try:
            opened.cursor.execute(self._text_of(begin))
            answer = work(opened.tables)
        except BaseException:
            self._roll_back(opened)
            raise
        self._commit(opened, is_repeatable=is_repeatable)
        return answer

    def close(self) -> None:
        """Close the connection; the next use opens another one."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.connection.close()

    def _opened(self) -> _Open:
        if self._open is None:
            connection = self._connector.connect()
            cursor = connection.cursor()
            tables = PostgresTables(Statements(cursor, self._texts))
            self._open = _Open(connection, cursor, tables)
        return self._open

    def _text_of(self, begin: str) -> bytes:
        """Return what begins a transaction, in one message to the server."""
        text = self._texts[f"meta.{begin}"].text % {b"lock_timeout": b"%d" % self._patience_ms}
        if self._is_lazy:
            text += b"; " + self._texts["meta.commit_lazily"].text
        return text

    def _commit(self, opened: _Open, *, is_repeatable: bool) -> None:
        try:
            opened.cursor.execute(b"COMMIT")
        except psycopg.Error as error:
            self._roll_back(opened)
            if is_repeatable or not is_uncertain(error):
                raise
            failure = wrap_uncertain(error, self._hide)
        else:
            if opened.cursor.statusmessage == "COMMIT":
                return
            failure = StateError("the server has rolled a transaction back")
        raise failure

    def _roll_back(self, opened: _Open) -> None:
        with contextlib.suppress(psycopg.Error):
            opened.cursor.execute(b"ROLLBACK")
        if opened.connection.info.transaction_status != TransactionStatus.IDLE:
            self.close()

    def _wait(self, error: psycopg.Error, number: int, deadline: float) -> ChatError | None:
        """Pause before the next attempt, or return the error that ends them."""
        if is_lost(error):
            self.close()
        longest = _SHORTEST_PAUSE * 2 ** min(number, _MOST_DOUBLINGS)
        pause = self._jitter(min(longest, _LONGEST_PAUSE))
        is_duplicate = error.sqlstate in DUPLICATES
        if (
            not may_pass(error)
            or (is_duplicate and number + 1 >= _TRIES_AT_DUPLICATES)
            or time.monotonic() + pause >= deadline
        ):
            return wrap_failure(error, self._hide)
        time.sleep(pause)
        return None
