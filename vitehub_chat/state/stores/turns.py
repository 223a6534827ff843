"""The steps of a turn, as the contract offers them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import attrs

from vitehub_chat.errors import StateConflictError, StateError
from vitehub_chat.model.clock import in_us
from vitehub_chat.model.keys import ConversationKey, encode_key
from vitehub_chat.model.plans import TurnPlan
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.model.rows import Row
from vitehub_chat.state.codec import decode_row
from vitehub_chat.state.contract import NO_CONTEXT, StateContext
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.row_requests import Pruned, PruneRequest
from vitehub_chat.state.steps import (
    admission,
    finishing,
    granting,
    making_room,
    recording,
    running,
    sweeping,
)
from vitehub_chat.state.steps.scopes import find_scope
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

        def step(tx: Transaction, now: int) -> Admission:
            terms = admission.Terms(
                policy=policy,
                lease=in_us(lease),
                dedupe_ttl=in_us(dedupe_ttl),
                now=now,
            )
            return admission.admit(tx, entry, terms)

        claim = entry.claim_id
        needs = Needs(
            now=self._now(ctx),
            lock_keys=(entry.lock_key,),
            claim_key=None if claim is None else encode_key(entry.conversation.encode(), claim),
        )
        if entry.replaces is not None:
            needs = attrs.evolve(
                needs,
                conversation=entry.conversation,
                message_ids=(entry.replaces,),
                has_open=True,
            )
        return await self._write(step, ctx, needs)

    async def take(
        self, lock_key: str, /, *, owner: str, lease: timedelta, ctx: StateContext = NO_CONTEXT
    ) -> Grant | None:
        """Carry out `TurnStore.take`."""
        return await self._write(
            lambda tx, now: granting.grant_next(tx, lock_key, owner, in_us(lease), now),
            ctx,
            Needs(now=self._now(ctx), lock_keys=(lock_key,)),
        )

    async def quarantine(
        self,
        ticket_ids: Sequence[str],
        /,
        *,
        owner: str,
        lease: timedelta,
        ctx: StateContext,
    ) -> Grant | None:
        """Carry out `TurnStore.quarantine`."""
        fence = ctx.fence
        if fence is None:
            raise StateConflictError("only a holder can put entries of its run aside")
        return await self._write(
            lambda tx, now: granting.quarantine(tx, ticket_ids, fence, owner, in_us(lease), now),
            ctx,
            Needs(now=self._now(ctx)),
        )

    async def sweep(
        self, agent: str | None, /, *, owner: str, lease: timedelta, ctx: StateContext = NO_CONTEXT
    ) -> Sequence[Grant]:
        """Carry out `TurnStore.sweep`."""
        lock_keys: dict[str, None] = {}
        above: int | None = 0
        while above is not None:
            lines = await self._read(
                partial(sweeping.find_lines, agent=agent, above=above),
                ctx,
                Needs(now=self._now(ctx)),
            )
            lock_keys.update(dict.fromkeys(lines.lock_keys))
            above = lines.next
        await self._write(sweeping.purge, ctx, Needs(now=self._now(ctx)))
        found = [await self.take(key, owner=owner, lease=lease, ctx=ctx) for key in lock_keys]
        return [grant for grant in found if grant is not None]

    async def record(
        self,
        ticket_id: str,
        /,
        *,
        rows: Sequence[NewRow],
        session: SessionRequest | None,
        window: WindowRequest | None = None,
        replaces: str | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Recorded:
        """Carry out `TurnStore.record`."""

        def step(tx: Transaction, now: int) -> Recorded:
            writing = self._writing(ctx, now, ticket_id)
            if replaces is None or session is None:
                return recording.record_turn(tx, ticket_id, rows, session, window, writing)
            return making_room.record_replacing(
                tx, ticket_id, rows, session, window, replaces, writing
            )

        needs = Needs(
            now=self._now(ctx),
            ticket_id=ticket_id,
            session=session,
            message_ids=() if session is None else ids_of(rows),
            window=window,
        )
        if replaces is not None and session is not None:
            needs = attrs.evolve(
                needs,
                conversation=session.conversation,
                message_ids=(*needs.message_ids, replaces),
                has_open=True,
            )
        return await self._write(step, ctx, needs)

    async def progress(self, ticket_id: str, /, *, answer: NewRow, ctx: StateContext) -> Row:
        """Carry out `TurnStore.progress`."""
        return await self._write(
            lambda tx, now: decode_row(
                finishing.write_progress(tx, ticket_id, answer, self._writing(ctx, now, ticket_id))
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
        plan: TurnPlan | None = None,
        prune: PruneRequest | None = None,
        ctx: StateContext,
    ) -> Finished:
        """Carry out `TurnStore.finish`."""

        def step(tx: Transaction, now: int, prune: PruneRequest | None) -> Finished:
            writing = self._writing(ctx, now, ticket_id)
            return finishing.finish(
                tx, ticket_id, answer, end, owner, in_us(lease), writing, plan, prune
            )

        needs = Needs(now=self._now(ctx), ticket_id=ticket_id, message_ids=ids_of([answer]))
        try:
            return await self._write(lambda tx, now: step(tx, now, prune), ctx, needs)
        except StateError as error:
            # Nothing was written. If that is because of the pruning, the turn ends without it.
            if prune is None or type(error) is not StateError:
                raise
            finished = await self._write(lambda tx, now: step(tx, now, None), ctx, needs)
            return attrs.evolve(finished, pruned=Pruned(error=error))

    async def running(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> bool:
        """Carry out `TurnStore.running`."""
        return await self._read(
            lambda tx, now: running.is_running(tx, find_scope(tx, key, session_id), now),
            ctx,
            attrs.evolve(self._needs(key, session_id, ctx), has_open=True),
        )

    async def outcome(self, ticket_id: str, /, *, ctx: StateContext = NO_CONTEXT) -> Outcome:
        """Carry out `TurnStore.outcome`."""
        return await self._read(
            lambda tx, now: finishing.outcome(tx, ticket_id, now),
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
            lambda tx, now: finishing.renew(tx, ticket_id, token, in_us(lease), now),
            unfenced,
            Needs(now=self._now(ctx), ticket_id=ticket_id),
        )

    async def withdraw(
        self, ticket_id: str, /, *, owner: str, lease: timedelta, ctx: StateContext = NO_CONTEXT
    ) -> Withdrawal:
        """Carry out `TurnStore.withdraw`."""
        return await self._write(
            lambda tx, now: finishing.withdraw(tx, ticket_id, owner, in_us(lease), now),
            ctx,
            Needs(now=self._now(ctx), ticket_id=ticket_id),
        )
