"""Keeping: what looks after a store that is reached by requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from vitehub_chat.model.clock import Clock
from vitehub_chat.state.sql.keeping import Ask, SqlKeeper


class RequestKeeper(SqlKeeper):
    """A `Keeper` by requests; before a retention is applied every scope is raised.

    So nobody relies on the expiries that it changes.
    """

    def __init__(
        self, ask: Ask, find_versions: Callable[[], Awaitable[tuple[int, int]]], clock: Clock
    ) -> None:
        """Say how to ask, and how to find the version of the schema."""
        super().__init__(ask, clock, raised=("upkeep.raise_scopes", "upkeep.lift_floor"))
        self._find_versions = find_versions

    async def find_versions(self) -> tuple[int, int]:
        """Return the version of the store and that of this release."""
        return await self._find_versions()

    async def wipe(self) -> None:
        """Do nothing: how a server forgets what was deleted is its own."""
