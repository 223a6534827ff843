"""Upkeep: what is over leaves a store that is reached by requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from vitehub_chat.errors import StateError
from vitehub_chat.model.clock import Clock, to_epoch_us
from vitehub_chat.state.sql.driver import Statement, Value
from vitehub_chat.state.sql.loading import Loader
from vitehub_chat.state.sql.texts import Texts

SLICE: Final = 200
"""How many rows, entries and scopes one request removes at most."""

_UNEXPIRED_AT_ONCE: Final = 2000
_WRITES_AT_ONCE: Final = 1000
_KEPT_US: Final = 3_600_000_000
"""How long idle scopes and notes of writes stay: longer than any write is repeated."""

_KEPT: Final = (
    "upkeep.raise_expiring",
    "rows.keep_forever",
    "upkeep.raise_expiring_documents",
    "documents.keep_forever",
)
_REMOVALS: Final = (
    "rows.purge",
    "entries.purge",
    "documents.purge",
    "upkeep.raise_floor",
    "upkeep.purge_scopes",
    "upkeep.purge_writes",
)


@attrs.define
class Upkeep:
    """Removes what is over: at once, and then once per interval.

    Attributes:
        interval: How long, in microseconds.
        due_at: When the next time is, or None: at once.
    """

    loader: Loader
    texts: Texts
    clock: Clock
    interval: int
    due_at: int | None = None

    async def clean_if_due(self) -> None:
        """Remove some if it is time to; more of it follows with the next call.

        A store that is busy or away is left alone until the next time.
        """
        now = to_epoch_us(self.clock.now())
        if self.due_at is not None and now < self.due_at:
            return
        self.due_at = now + self.interval
        try:
            if await self._remove(now):
                self.due_at = None
        except StateError:
            self.due_at = now + self.interval

    async def keep_forever(self) -> None:
        """Let no row, plan or summary expire, expired ones included, in short transactions."""
        values: dict[str, Value] = {"limit": _UNEXPIRED_AT_ONCE, "besides": "value"}
        has_expiring: Statement = (self.texts["upkeep.has_expiring"], values)
        is_more = (await self.loader.ask([has_expiring]))[0][0][0]
        while is_more:
            batch = [*self._statements(_KEPT, values), has_expiring]
            is_more = (await self.loader.ask(batch))[-1][0][0]

    async def _remove(self, now: int) -> bool:
        """Remove some of what is over, and tell whether there is more."""
        values: dict[str, Value] = {
            "now": now,
            "before": now - _KEPT_US,
            "limit": SLICE,
            "many": _WRITES_AT_ONCE,
        }
        is_due: Statement = (self.texts["upkeep.is_due"], values)
        if not (await self.loader.ask([is_due]))[0][0][0]:
            return False
        batch = [*self._statements(_REMOVALS, values), is_due]
        return bool((await self.loader.ask(batch))[-1][0][0])

    def _statements(self, names: Iterable[str], values: Mapping[str, Value]) -> Iterator[Statement]:
        """Yield statements; a dialect that does two things at once has one for both."""
        found = self.texts.statements
        yield from ((found[name], values) for name in names if name in found)
