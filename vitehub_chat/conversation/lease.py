"""Lease: keeping the lock of a running turn, and stopping the turn when it is lost."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Self

from vitehub_chat.conversation.control import LOCK_LOST, TurnControl
from vitehub_chat.errors import StateError
from vitehub_chat.state.contract import Fence, StateContext, TurnStore
from vitehub_chat.state.values import Grant

LEASE = timedelta(seconds=30)
RENEW_EVERY = timedelta(seconds=10)
RETRY_EVERY = timedelta(seconds=2)
"""How soon a renewal that was not answered is tried again."""
ATTENDANCE = timedelta(seconds=10)
"""How long a waiting caller is waited for; a run is not handed to one that died before."""
ATTEND_EVERY = timedelta(seconds=3)


class LeaseKeeper:
    """Renews the lease of one granted run while it is entered."""

    def __init__(
        self,
        turns: TurnStore,
        grant: Grant,
        control: TurnControl,
        max_lifetime: timedelta | None,
    ) -> None:
        self._turns = turns
        self._grant = grant
        self._control = control
        self._max_lifetime = max_lifetime
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def context(self) -> StateContext:
        """The context under which the run writes."""
        return StateContext(fence=Fence(self._grant.lock_key, self._grant.token))

    def __enter__(self) -> Self:
        if self._max_lifetime is not None:
            loop, lifetime_s = asyncio.get_running_loop(), self._max_lifetime.total_seconds()
            self._timer = loop.call_later(lifetime_s, self._control.stop, "lock_lifetime")
        self._task = asyncio.create_task(self._keep())
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        safe_until = loop.time() + LEASE.total_seconds()
        pause = RENEW_EVERY.total_seconds()
        while True:
            await asyncio.sleep(pause)
            asked_at = loop.time()
            is_held = await self._renew(min(asked_at + RENEW_EVERY.total_seconds(), safe_until))
            if is_held:
                safe_until = asked_at + LEASE.total_seconds()
            pause = (RENEW_EVERY if is_held else RETRY_EVERY).total_seconds()
            # Without an answer the lease may still hold; only time decides.
            if is_held is False or loop.time() + pause >= safe_until:
                self._control.stop(LOCK_LOST)
                return

    async def _renew(self, give_up_at: float) -> bool | None:
        """Ask for more time, and tell whether the lock is held; None without an answer."""
        try:
            async with asyncio.timeout_at(give_up_at):
                return await self._turns.renew(self._grant.ticket_id, lease=LEASE, ctx=self.context)
        except (StateError, TimeoutError):
            return None
