"""Summaries, as the contract offers them."""

from __future__ import annotations

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import Summary
from vitehub_chat.state.contract import NO_CONTEXT, StateContext
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.steps import listing
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
            lambda tx: listing.save_summary(tx, key, session_id, text, self._now(ctx)),
            ctx,
            Needs(
                now=self._now(ctx),
                conversation=key,
                session_ids=() if session_id is None else (session_id,),
                has_summary=True,
            ),
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
            lambda tx: listing.get_summary(tx, key, session_id),
            ctx,
            Needs(
                now=self._now(ctx),
                conversation=key,
                session_ids=() if session_id is None else (session_id,),
                has_summary=True,
            ),
        )
