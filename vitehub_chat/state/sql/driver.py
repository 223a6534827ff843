"""Driver: the seam between the Agent State in SQL and a database that is reached by requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

Value = str | int | float | bytes | None
Columns = Sequence[Value]
Statement = tuple[str, Mapping[str, Value]]
"""A text with parameters like `:name`, and their values; it may have more than the text uses."""


@attrs.frozen(kw_only=True)
class Capabilities:
    """What a database is.

    Attributes:
        dialect: Which SQL it speaks: `sqlite` or `postgres`.
        is_durable: Whether what it stores survives it.
        is_shared: Whether several processes may use it at once.
        has_server_clock: Whether its own clock is to be followed instead of the machine's, so that
            leases last equally long for processes whose clocks differ.
        max_value_bytes: How large one value may be, None is any size; the state sends none that is
            larger. For a text it counts in UTF-8.
    """

    dialect: str = "sqlite"
    is_durable: bool = True
    is_shared: bool = True
    has_server_clock: bool = False
    max_value_bytes: int | None = None


class SqlDriver(Protocol):
    """A database by requests; safe for many tasks and several event loops.

    It connects when it is first used, also after `aclose`. There are no transactions that stay
    open between two calls.

    Both calls raise:

    - `StateConflictError`: a constraint refused a statement; nothing was written.
    - `StateUnavailableError`: there was no answer, and `outcome` says whether the batch may have
      been written, or be written yet. What is `not_written` and worth it is repeated here already
      or by the caller; what is `unknown` is repeated by the caller, who can tell.
    - Another `StateError`, or a `ConfigError`: it would fail again; nothing was written.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What the database is; known before it is connected to."""

    async def execute(self, sql: str, named: Mapping[str, Value], /) -> Sequence[Columns]:
        """Run one statement and return its rows."""

    async def batch(self, statements: Sequence[Statement], /) -> Sequence[Sequence[Columns]]:
        """Run statements in one transaction, in order, and return the rows of each.

        All of them or none, in one request, also when the caller is cancelled. What they read is
        one consistent view.
        """

    async def aclose(self) -> None:
        """Give connections up; repeating does nothing."""
