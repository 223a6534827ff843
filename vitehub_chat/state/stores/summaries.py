"""Summaries, as the contract offers them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.errors import InputError
from vitehub_chat.model.json_text import replace_surrogates
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rolling import Checkpoint, PendingFlush, Rolling, RollingWrite
from vitehub_chat.model.rows import Summary
from vitehub_chat.state.contract import NO_CONTEXT, StateContext
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.steps import listing, rolling
from vitehub_chat.state.steps.rolling import Roll
from vitehub_chat.state.stores.store import Store


class Summaries(Store):
    """`SummaryStore`."""

    async def save_manual(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        text: str,
        ctx: StateContext = NO_CONTEXT,
    ) -> Summary:
        """Carry out `SummaryStore.save_manual`."""
        return await self._write(
            lambda tx, now: listing.save_summary(tx, key, session_id, text, now),
            ctx,
            attrs.evolve(self._needs(key, session_id, ctx), has_summary=True),
        )

    async def get_manual(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Summary | None:
        """Carry out `SummaryStore.get_manual`."""
        return await self._read(
            lambda tx, _now: listing.get_summary(tx, key, session_id),
            ctx,
            attrs.evolve(self._needs(key, session_id, ctx), has_summary=True),
        )

    async def get_rolling(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Rolling | None:
        """Carry out `SummaryStore.get_rolling`."""
        return await self._read(
            lambda tx, now: rolling.get_rolling(tx, key, session_id, now),
            ctx,
            self._rolling_needs(key, session_id, ctx),
        )

    async def get_checkpoints(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Sequence[Checkpoint]:
        """Carry out `SummaryStore.get_checkpoints`."""
        return await self._read(
            lambda tx, now: rolling.get_checkpoints(tx, key, session_id, now),
            ctx,
            attrs.evolve(
                self._rolling_needs(key, session_id, ctx), newest_documents=("checkpoints",)
            ),
        )

    async def commit_roll(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        since: Rolling,
        summary: str,
        anchor: int,
        model: str | None = None,
        checkpoints_kept: int = 64,
        system_seqs: Sequence[int] = (),
        ctx: StateContext = NO_CONTEXT,
    ) -> RollingWrite:
        """Carry out `SummaryStore.commit_roll`."""
        if anchor <= since.anchor:
            raise InputError(f"must be above {since.anchor}", path="anchor")
        if not summary.strip():
            raise InputError("needs visible text", path="summary")
        roll = Roll(
            summary=replace_surrogates(summary),
            anchor=anchor,
            model=model,
            checkpoints_kept=max(checkpoints_kept, 1),
            system_seqs=tuple(system_seqs),
        )
        needs = attrs.evolve(
            self._rolling_needs(key, session_id, ctx),
            newest_documents=("rolling", "checkpoints"),
        )
        return await self._write(
            lambda tx, now: rolling.commit_roll(
                tx, key, session_id, since, roll, self._writing(ctx, now)
            ),
            ctx,
            needs,
        )

    async def set_pending(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        since: Rolling,
        pending: PendingFlush | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> RollingWrite:
        """Carry out `SummaryStore.set_pending`."""
        return await self._write(
            lambda tx, now: rolling.set_pending(
                tx, key, session_id, since, pending, self._writing(ctx, now)
            ),
            ctx,
            self._rolling_needs(key, session_id, ctx),
        )

    async def note_failure(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        since: Rolling,
        error: str,
        ctx: StateContext = NO_CONTEXT,
    ) -> RollingWrite:
        """Carry out `SummaryStore.note_failure`."""
        return await self._write(
            lambda tx, now: rolling.note_failure(
                tx, key, session_id, since, error, self._writing(ctx, now)
            ),
            ctx,
            self._rolling_needs(key, session_id, ctx),
        )

    async def set_correction(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        since: Rolling,
        correction: float,
        ctx: StateContext = NO_CONTEXT,
    ) -> RollingWrite:
        """Carry out `SummaryStore.set_correction`."""
        return await self._write(
            lambda tx, now: rolling.set_correction(
                tx, key, session_id, since, correction, self._writing(ctx, now)
            ),
            ctx,
            self._rolling_needs(key, session_id, ctx),
        )

    def _rolling_needs(
        self, key: ConversationKey, session_id: str | None, ctx: StateContext
    ) -> Needs:
        return Needs(
            now=self._now(ctx),
            conversation=key,
            session_ids=(session_id,),
            newest_documents=("rolling",),
        )
