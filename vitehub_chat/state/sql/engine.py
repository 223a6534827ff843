"""Engine: what one process keeps of an open store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import attrs

from vitehub_chat.state.needs import Needs
from vitehub_chat.state.sql.attempts import Attempts, Workshop
from vitehub_chat.state.sql.lines import Lines
from vitehub_chat.state.sql.looks.documents import value_scope
from vitehub_chat.state.sql.upkeep import Upkeep
from vitehub_chat.state.tables import Transaction

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Engine:
    """What one process keeps of an open store.

    Attributes:
        pid: The process; a fork of it makes an engine of its own.
        shop: What steps are run with.
        lines: Who waits for whom.
        upkeep: What removes what is over.
    """

    pid: int
    shop: Workshop
    lines: Lines
    upkeep: Upkeep

    async def write(self, step: Callable[[Transaction], T], needs: Needs) -> T:
        """Run a step behind those of this process that change the same, and return its answer."""
        await self.upkeep.clean_if_due()
        attempts = Attempts(self.shop, step, needs)
        name = self._line_of(needs)
        if name is None:
            return await attempts.settle()
        async with self.lines.hold(name):
            return await attempts.settle()

    def _line_of(self, needs: Needs) -> str | None:
        """Return what a step changes above all, as far as that is known."""
        lock_key = self.shop.cache.lock_key_of(needs)
        if lock_key is not None:
            return f"lock:{lock_key}"
        if needs.value is not None:
            return f"value:{value_scope(*needs.value)}"
        request = needs.session
        key = needs.conversation if request is None else request.conversation
        if key is None:
            return None if needs.ticket_id is None else f"ticket:{needs.ticket_id}"
        return f"conversation:{key.encode()}"
