"""Older servers: those that only have version 1 of the protocol, which `libsql_client` speaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from vitehub_chat.errors import ConfigError, MissingDependencyError
from vitehub_chat.state.providers.libsql.answers import Rows
from vitehub_chat.state.providers.libsql.failures import is_no_endpoint
from vitehub_chat.state.sql.driver import Capabilities, Columns, SqlDriver, Statement, Value


class AnyVersionDriver:
    """SQL on a server of any version: the newest that it has, asked for from the newest on."""

    def __init__(self, newer: SqlDriver, make_older: Callable[[], SqlDriver]) -> None:
        """Make a driver of two.

        Args:
            newer: For servers of version 2 and 3.
            make_older: Makes the one for version 1; it may lack an extra.
        """
        self._newer = newer
        self._make_older = make_older
        self._older: SqlDriver | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the database is."""
        return self._newer.capabilities

    async def execute(self, sql: str, named: Mapping[str, Value], /) -> Sequence[Columns]:
        """Run one statement and return its rows; raises as `batch`."""
        return (await self.batch([(sql, named)]))[0]

    async def batch(self, statements: Sequence[Statement], /) -> Sequence[Sequence[Columns]]:
        """Run statements in one transaction and return the rows of each; all or nothing.

        Raises:
            ConfigError: The server has no version at all, or only the first and the extra for it
                is not installed; or as the driver of its version.
            StateError: As the driver of its version.
        """
        if self._older is not None:
            return await self._older.batch(statements)
        try:
            return await self._newer.batch(statements)
        except ConfigError as error:
            if not is_no_endpoint(error):
                raise
            return await self._ask_older(statements, error)

    async def aclose(self) -> None:
        """Give the connections up; repeating does nothing."""
        older, self._older = self._older, None
        if older is not None:
            await older.aclose()
        await self._newer.aclose()

    async def _ask_older(self, statements: Sequence[Statement], error: ConfigError) -> list[Rows]:
        try:
            older = self._make_older()
        except MissingDependencyError:
            raise error from error.__cause__
        try:
            rows = await older.batch(statements)
        except ConfigError as other:
            await older.aclose()
            if is_no_endpoint(other):
                raise error from error.__cause__
            raise
        self._older = older
        return [[tuple(row) for row in each] for each in rows]
