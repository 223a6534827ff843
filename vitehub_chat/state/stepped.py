"""Stepped state: the whole contract for providers that can run a step to write or to read."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Self, TypeVar

from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.model.clock import Clock, in_us, to_epoch_us
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import ConcurrencyPolicy, Retention
from vitehub_chat.model.rows import HistoryPage, Row, SessionInfo, SessionPage, Summary
from vitehub_chat.state.codec import decode_row
from vitehub_chat.state.contract import NO_CONTEXT, StateContext
from vitehub_chat.state.steps import (
    admission,
    clearing,
    finishing,
    granting,
    listing,
    reading,
    recording,
    resolving,
)
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import (
    Admission,
    Finished,
    Grant,
    NewEntry,
    NewRow,
    Outcome,
    PageRequest,
    Recorded,
    RowBatch,
    SessionRef,
    SessionRequest,
    TurnEnd,
    WindowRequest,
    WindowRows,
    Withdrawal,
)

T = TypeVar("T")
Step = Callable[[Transaction], T]

EXPORT_BATCH = 200


class SteppedAgentState(abc.ABC):
    """An `AgentState` whose provider runs steps; see `vitehub_chat.state.tables`."""

    def __init__(self, *, clock: Clock, features: frozenset[str], retention: Retention) -> None:
        self.clock = clock
        self.features = features
        self.retention = retention
        self.turns = _Turns(self)
        self.transcripts = _Transcripts(self)
        self.sessions = _Sessions(self)
        self.summaries = _Summaries(self)

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


class _Store:
    """One Protocol of the contract, over the steps."""

    def __init__(self, state: SteppedAgentState) -> None:
        self._state = state

    def _now(self, ctx: StateContext) -> int:
        return to_epoch_us(self._state.clock.now() if ctx.now is None else ctx.now)

    def _writing(self, ctx: StateContext, turn_id: str | None = None) -> recording.Writing:
        fence = ctx.fence
        return recording.Writing(
            now=self._now(ctx),
            turn_id=turn_id,
            retention=self._state.retention,
            fence_key=None if fence is None else fence.lock_key,
            fence_token=None if fence is None else fence.token,
        )

    async def _write(self, step: Step[T], ctx: StateContext) -> T:
        def fenced(tx: Transaction) -> T:
            granting.check_fence(tx, ctx.fence, self._now(ctx))
            return step(tx)

        return await self._in_time(self._state.run_write(fenced), ctx, writes=True)

    async def _read(self, step: Step[T], ctx: StateContext) -> T:
        return await self._in_time(self._state.run_read(step), ctx, writes=False)

    async def _in_time(self, call: Awaitable[T], ctx: StateContext, *, writes: bool) -> T:
        """Wait for an answer until the deadline; a write that has begun goes on after it."""
        if ctx.deadline is None:
            return await call
        left = (ctx.deadline - self._state.clock.now()).total_seconds()
        try:
            async with asyncio.timeout(max(left, 0)):
                return await call
        except TimeoutError:
            raise StateUnavailableError(
                "no answer before the deadline", outcome="unknown" if writes else "not_written"
            ) from None


class _Turns(_Store):
    async def admit(
        self,
        entry: NewEntry,
        /,
        *,
        policy: ConcurrencyPolicy,
        lease: timedelta,
        dedupe_ttl: timedelta,
        ctx: StateContext = NO_CONTEXT,
    ) -> Admission:
        def step(tx: Transaction) -> Admission:
            terms = admission.Terms(
                policy=policy,
                lease=in_us(lease),
                dedupe_ttl=in_us(dedupe_ttl),
                now=self._now(ctx),
            )
            return admission.admit(tx, entry, terms)

        return await self._write(step, ctx)

    async def take(
        self, lock_key: str, /, *, owner: str, lease: timedelta, ctx: StateContext = NO_CONTEXT
    ) -> Grant | None:
        return await self._write(
            lambda tx: granting.grant_next(tx, lock_key, owner, in_us(lease), self._now(ctx)), ctx
        )

    async def record(
        self,
        ticket_id: str,
        /,
        *,
        rows: Sequence[NewRow],
        session: SessionRequest | None,
        window: WindowRequest | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Recorded:
        return await self._write(
            lambda tx: recording.record_turn(
                tx, ticket_id, rows, session, window, self._writing(ctx, ticket_id)
            ),
            ctx,
        )

    async def progress(self, ticket_id: str, /, *, answer: NewRow, ctx: StateContext) -> Row:
        return await self._write(
            lambda tx: decode_row(
                finishing.write_progress(tx, ticket_id, answer, self._writing(ctx, ticket_id))
            ),
            ctx,
        )

    async def finish(
        self,
        ticket_id: str,
        /,
        *,
        answer: NewRow | None,
        end: TurnEnd,
        owner: str,
        lease: timedelta,
        ctx: StateContext,
    ) -> Finished:
        return await self._write(
            lambda tx: finishing.finish(
                tx, ticket_id, answer, end, owner, in_us(lease), self._writing(ctx, ticket_id)
            ),
            ctx,
        )

    async def outcome(self, ticket_id: str, /, *, ctx: StateContext = NO_CONTEXT) -> Outcome:
        return await self._read(lambda tx: finishing.outcome(tx, ticket_id, self._now(ctx)), ctx)

    async def renew(
        self, ticket_id: str, /, *, lease: timedelta, ctx: StateContext = NO_CONTEXT
    ) -> bool:
        token = None if ctx.fence is None else ctx.fence.token
        # A lost lease is the answer of this call, not a refused write.
        unfenced = StateContext(now=ctx.now, deadline=ctx.deadline, trace=ctx.trace)
        return await self._write(
            lambda tx: finishing.renew(tx, ticket_id, token, in_us(lease), self._now(ctx)),
            unfenced,
        )

    async def withdraw(
        self, ticket_id: str, /, *, owner: str, lease: timedelta, ctx: StateContext = NO_CONTEXT
    ) -> Withdrawal:
        return await self._write(
            lambda tx: finishing.withdraw(tx, ticket_id, owner, in_us(lease), self._now(ctx)), ctx
        )


class _Transcripts(_Store):
    async def append(
        self,
        session: SessionRequest,
        /,
        *,
        rows: Sequence[NewRow],
        ctx: StateContext = NO_CONTEXT,
    ) -> Sequence[Row]:
        if not rows:
            return ()
        recorded = await self._write(
            lambda tx: recording.append_rows(tx, rows, session, None, self._writing(ctx)), ctx
        )
        return recorded.rows

    async def get(
        self,
        key: ConversationKey,
        /,
        *,
        message_ids: Sequence[str],
        ctx: StateContext = NO_CONTEXT,
    ) -> Sequence[Row]:
        return await self._read(
            lambda tx: reading.get_rows(tx, key, message_ids, self._now(ctx)), ctx
        )

    async def window(
        self,
        key: ConversationKey,
        /,
        *,
        session: SessionRef | None,
        window: WindowRequest,
        ctx: StateContext = NO_CONTEXT,
    ) -> WindowRows:
        return await self._read(
            lambda tx: reading.window_of(tx, key, session, window, self._now(ctx)), ctx
        )

    async def page(
        self, key: ConversationKey, /, *, request: PageRequest, ctx: StateContext = NO_CONTEXT
    ) -> HistoryPage:
        return await self._read(lambda tx: reading.read_page(tx, key, request, self._now(ctx)), ctx)

    async def export(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> AsyncIterator[RowBatch]:
        last: int | None = 0
        while last is not None:
            batch, last = await self._batch(key, session_id, last, ctx)
            yield batch

    async def _batch(
        self, key: ConversationKey, session_id: str | None, above: int, ctx: StateContext
    ) -> tuple[RowBatch, int | None]:
        return await self._read(
            lambda tx: reading.read_batch(tx, key, session_id, above, EXPORT_BATCH, self._now(ctx)),
            ctx,
        )


class _Sessions(_Store):
    async def resolve(
        self, session: SessionRequest, /, *, ctx: StateContext = NO_CONTEXT
    ) -> SessionRef:
        def step(tx: Transaction) -> SessionRef:
            found, is_new = resolving.resolve_session(tx, session, self._now(ctx))
            return resolving.ref_of(found, is_new=is_new)

        return await self._read(step, ctx)

    async def list(
        self,
        tenant: str | None,
        /,
        *,
        agent: str | None,
        user_key: str | None = None,
        conversation: ConversationKey | None = None,
        limit: int = 20,
        cursor: str | None = None,
        updated_since: datetime | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> SessionPage:
        request = listing.ListRequest(
            tenant=tenant,
            agent=agent,
            user_key=user_key,
            conversation=conversation,
            limit=limit,
            cursor=cursor,
            updated_since=updated_since,
        )
        return await self._read(lambda tx: listing.list_sessions(tx, request), ctx)

    async def get(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> SessionInfo:
        return await self._read(lambda tx: listing.get_session(tx, key, session_id), ctx)

    async def clear(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None = None,
        delete_session: bool = False,
        ctx: StateContext = NO_CONTEXT,
    ) -> Mapping[str, int]:
        def step(tx: Transaction) -> dict[str, int]:
            return clearing.clear(
                tx, key, session_id, self._now(ctx), delete_session=delete_session
            )

        return await self._write(step, ctx)


class _Summaries(_Store):
    async def save_manual(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        text: str,
        ctx: StateContext = NO_CONTEXT,
    ) -> Summary:
        return await self._write(
            lambda tx: listing.save_summary(tx, key, session_id, text, self._now(ctx)), ctx
        )

    async def get_manual(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Summary | None:
        return await self._read(lambda tx: listing.get_summary(tx, key, session_id), ctx)
