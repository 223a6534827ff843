"""The steps of a turn, as the contract offers them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from vitehub_chat.model.clock import in_us
from vitehub_chat.model.keys import encode_key
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.model.rows import Row
from vitehub_chat.state.codec import decode_row
from vitehub_chat.state.contract import NO_CONTEXT, StateContext
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.steps import admission, finishing, granting, recording
from vitehub_chat.state.stores.store import Store, ids_of
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import (
    Admission,
    Finished,
    Grant,
    NewEntry,
    NewRow,
    Outcome,
    Recorded,
    SessionRequest,
    TurnEnd,
    WindowRequest,
    Withdrawal,
)


class Turns(Store):
    """`TurnStore`."""

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
        """Carry out `TurnStore.admit`."""

        def step(tx: Transaction) -> Admission:
            terms = admission.Terms(
                policy=policy,
                lease=in_us(lease),
                dedupe_ttl=in_us(dedupe_ttl),
                now=self._now(ctx),
            )
            return admission.admit(tx, entry, terms)

        claim = entry.claim_id
        needs = Needs(
            now=self._now(ctx),
            lock_keys=(entry.lock_key,),
            claim_key=None if claim is None else encode_key(entry.conversation.encode(), claim),
        )
        return await self._write(step, ctx, needs)

    async def take(
        self, lock_key: str, /, *, owner: str, lease: timedelta, ctx: StateContext = NO_CONTEXT
    ) -> Grant | None:
        """Carry out `TurnStore.take`."""
        return await self._write(
            lambda tx: granting.grant_next(tx, lock_key, owner, in_us(lease), self._now(ctx)),
            ctx,
            Needs(now=self._now(ctx), lock_keys=(lock_key,)),
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
        """Carry out `TurnStore.record`."""
        return await self._write(
            lambda tx: recording.record_turn(
                tx, ticket_id, rows, session, window, self._writing(ctx, ticket_id)
            ),
            ctx,
            Needs(
                now=self._now(ctx),
                ticket_id=ticket_id,
                session=session,
                message_ids=() if session is None else ids_of(rows),
                window=window,
            ),
        )

    async def progress(self, ticket_id: str, /, *, answer: NewRow, ctx: StateContext) -> Row:
        """Carry out `TurnStore.progress`."""
        return await self._write(
            lambda tx: decode_row(
                finishing.write_progress(tx, ticket_id, answer, self._writing(ctx, ticket_id))
            ),
            ctx,
            Needs(now=self._now(ctx), ticket_id=ticket_id, message_ids=ids_of([answer])),
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
        """Carry out `TurnStore.finish`."""
        return await self._write(
            lambda tx: finishing.finish(
                tx, ticket_id, answer, end, owner, in_us(lease), self._writing(ctx, ticket_id)
            ),
            ctx,
            Needs(now=self._now(ctx), ticket_id=ticket_id, message_ids=ids_of([answer])),
        )

    async def outcome(self, ticket_id: str, /, *, ctx: StateContext = NO_CONTEXT) -> Outcome:
        """Carry out `TurnStore.outcome`."""
        return await self._read(
            lambda tx: finishing.outcome(tx, ticket_id, self._now(ctx)),
            ctx,
            Needs(now=self._now(ctx), ticket_id=ticket_id),
        )

    async def renew(
        self, ticket_id: str, /, *, lease: timedelta, ctx: StateContext = NO_CONTEXT
    ) -> bool:
        """Carry out `TurnStore.renew`."""
        token = None if ctx.fence is None else ctx.fence.token
        # A lost lease is the answer of this call, not a refused write.
        unfenced = StateContext(now=ctx.now, deadline=ctx.deadline, trace=ctx.trace)
        return await self._write(
            lambda tx: finishing.renew(tx, ticket_id, token, in_us(lease), self._now(ctx)),
            unfenced,
            Needs(now=self._now(ctx), ticket_id=ticket_id),
        )

    async def withdraw(
        self, ticket_id: str, /, *, owner: str, lease: timedelta, ctx: StateContext = NO_CONTEXT
    ) -> Withdrawal:
        """Carry out `TurnStore.withdraw`."""
        return await self._write(
            lambda tx: finishing.withdraw(tx, ticket_id, owner, in_us(lease), self._now(ctx)),
            ctx,
            Needs(now=self._now(ctx), ticket_id=ticket_id),
        )
