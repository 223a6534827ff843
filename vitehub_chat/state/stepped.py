"""Stepped state: the whole contract for providers that can run a step to write or to read."""

from __future__ import annotations

import abc
from typing import Self, TypeVar

from vitehub_chat.model.clock import Clock
from vitehub_chat.model.policies import Retention
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.seeking import Seeker
from vitehub_chat.state.stores.admin import Administration, Keeper
from vitehub_chat.state.stores.key_values import KeyValues
from vitehub_chat.state.stores.plans import Plans
from vitehub_chat.state.stores.searching import Searching
from vitehub_chat.state.stores.sessions import Sessions
from vitehub_chat.state.stores.store import Step
from vitehub_chat.state.stores.summaries import Summaries
from vitehub_chat.state.stores.transcripts import Transcripts
from vitehub_chat.state.stores.turns import Turns

__all__ = ["Step", "SteppedAgentState"]

T = TypeVar("T")


class SteppedAgentState(abc.ABC):
    """An `AgentState` whose provider runs steps; see `vitehub_chat.state.tables`.

    Attributes:
        keeper: What looks after the store; set by the provider.
        system: What database it is, as telemetry names it.
    """

    system: str = "other_sql"
    keeper: Keeper

    def __init__(
        self,
        *,
        clock: Clock,
        features: frozenset[str],
        retention: Retention,
        seeker: Seeker | None = None,
    ) -> None:
        """Create a closed state.

        Args:
            clock: The source of the time.
            features: Its optional powers, but for `search`.
            retention: How long rows are kept.
            seeker: What finds rows by their text, or None: then there is no search.
        """
        self.clock = clock
        self.features = features if seeker is None else features | {"search"}
        self.retention: Retention = retention
        self.turns = Turns(self)
        self.transcripts = Transcripts(self)
        self.sessions = Sessions(self)
        self.summaries = Summaries(self)
        self.plans = Plans(self)
        self.values = KeyValues(self)
        self.search = None if seeker is None else Searching(self, seeker)
        self.admin = Administration(self)

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close it; repeating does nothing."""
        await self._close()

    @abc.abstractmethod
    async def drop(self) -> None:
        """Delete the tables of this store and everything in them, then close it.

        Opening it again makes new ones. Another object that has the same tables open fails from
        then on. Tables of other prefixes stay as they are.

        Raises:
            StateClosedError: It is not open; nothing was deleted.
        """

    @abc.abstractmethod
    async def _open(self) -> None:
        """Open the store; no-op while it is open."""

    @abc.abstractmethod
    async def _close(self) -> None:
        """Close the store; no-op while it is closed."""

    @abc.abstractmethod
    async def run_write(self, step: Step[T], /) -> T:
        """Run a step in one transaction; when it raises nothing is written."""

    @abc.abstractmethod
    async def run_read(self, step: Step[T], /) -> T:
        """Run a step that writes nothing on one consistent view."""

    async def write_with(self, step: Step[T], _needs: Needs, /) -> T:
        """Run a step like `run_write`, told what it will probably look at.

        For providers that fetch it all at once; the others need not care.
        """
        return await self.run_write(step)

    async def read_with(self, step: Step[T], _needs: Needs, /) -> T:
        """Run a step like `run_read`, told what it will probably look at."""
        return await self.run_read(step)
