"""Store: what the Protocols of the contract share over the steps."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeVar

import attrs

from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.model.clock import Clock, to_epoch_us
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.observing import observed
from vitehub_chat.model.policies import Retention
from vitehub_chat.state.contract import StateContext
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.steps.granting import check_fence
from vitehub_chat.state.steps.recording import Writing
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import NewRow

T = TypeVar("T")
Step = Callable[[Transaction], T]
TimedStep = Callable[[Transaction, int], T]
"""A step that is handed the time of its call, the same one however often it runs."""


class StepRunner(Protocol):
    """A provider that runs steps.

    Attributes:
        system: What it is, as telemetry names it, such as `sqlite`.
    """

    system: str
    clock: Clock
    retention: Retention

    async def write_with(self, step: Step[T], needs: Needs, /) -> T:
        """Run a step in one transaction; when it raises nothing is written."""

    async def read_with(self, step: Step[T], needs: Needs, /) -> T:
        """Run a step that writes nothing on one consistent view."""


class Store:
    """One Protocol of the contract; whoever observes is told of each call."""

    def __init_subclass__(cls, *, area: str = "", **settings: object) -> None:
        """Make a span of every public call, named by the area, such as `turns.admit`."""
        super().__init_subclass__(**settings)
        for name, method in tuple(vars(cls).items()):
            if inspect.iscoroutinefunction(method) and not name.startswith("_"):
                operation = f"{area or cls.__name__.lower()}.{name}"
                setattr(cls, name, observed(method, operation, _system_of))

    def __init__(self, runner: StepRunner) -> None:
        self._runner = runner

    def _now(self, ctx: StateContext) -> int:
        return to_epoch_us(self._runner.clock.now() if ctx.now is None else ctx.now)

    def _writing(self, ctx: StateContext, now: int, turn_id: str | None = None) -> Writing:
        fence = ctx.fence
        return Writing(
            now=now,
            turn_id=turn_id,
            retention=self._runner.retention,
            fence_key=None if fence is None else fence.lock_key,
            fence_token=None if fence is None else fence.token,
        )

    def _needs(
        self, key: ConversationKey, session_id: str | None, ctx: StateContext, *message_ids: str
    ) -> Needs:
        """Return what a step needs of a conversation, or of one session of it."""
        return Needs(
            now=self._now(ctx),
            conversation=key,
            session_ids=() if session_id is None else (session_id,),
            message_ids=message_ids,
        )

    async def _write(self, step: TimedStep[T], ctx: StateContext, needs: Needs) -> T:
        def fenced(tx: Transaction) -> T:
            check_fence(tx, ctx.fence, needs.now)
            return step(tx, needs.now)

        if ctx.fence is not None:
            needs = attrs.evolve(needs, lock_keys=(*needs.lock_keys, ctx.fence.lock_key))
        return await self._in_time(self._runner.write_with(fenced, needs), ctx, writes=True)

    async def _read(self, step: TimedStep[T], ctx: StateContext, needs: Needs) -> T:
        def timed(tx: Transaction) -> T:
            return step(tx, needs.now)

        return await self._in_time(self._runner.read_with(timed, needs), ctx, writes=False)

    async def _in_time(self, call: Awaitable[T], ctx: StateContext, *, writes: bool) -> T:
        """Wait for an answer until the deadline; a write that has begun goes on after it."""
        if ctx.deadline is None:
            return await call
        left = (ctx.deadline - self._runner.clock.now()).total_seconds()
        try:
            async with asyncio.timeout(max(left, 0)):
                return await call
        except TimeoutError:
            raise StateUnavailableError(
                "no answer before the deadline", outcome="unknown" if writes else "not_written"
            ) from None


def _system_of(store: Store) -> str:
    return store._runner.system  # noqa: SLF001 - its own


def ids_of(rows: Iterable[NewRow | None]) -> tuple[str, ...]:
    """Return the message ids of rows to store."""
    return tuple(row.message.id or "" for row in rows if row is not None)
