"""Stored messages, as the contract offers them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import HistoryPage, Row
from vitehub_chat.state.contract import NO_CONTEXT, StateContext
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.steps import reading, recording
from vitehub_chat.state.stores.store import Store, ids_of
from vitehub_chat.state.values import (
    NewRow,
    PageRequest,
    RowBatch,
    SessionRef,
    SessionRequest,
    WindowRequest,
    WindowRows,
)

EXPORT_BATCH: Final = 200
"""How many rows an export reads at once."""


class Transcripts(Store):
    """`TranscriptStore`."""

    async def append(
        self,
        session: SessionRequest,
        /,
        *,
        rows: Sequence[NewRow],
        ctx: StateContext = NO_CONTEXT,
    ) -> Sequence[Row]:
        """Carry out `TranscriptStore.append`."""
        if not rows:
            return ()
        recorded = await self._write(
            lambda tx: recording.append_rows(tx, rows, session, None, self._writing(ctx)),
            ctx,
            Needs(now=self._now(ctx), session=session, message_ids=ids_of(rows)),
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
        """Carry out `TranscriptStore.get`."""
        return await self._read(
            lambda tx: reading.get_rows(tx, key, message_ids, self._now(ctx)),
            ctx,
            Needs(now=self._now(ctx), conversation=key, message_ids=tuple(message_ids)),
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
        """Carry out `TranscriptStore.window`."""
        return await self._read(
            lambda tx: reading.window_of(tx, key, session, window, self._now(ctx)),
            ctx,
            Needs(
                now=self._now(ctx),
                conversation=key,
                session_key=None if session is None else session.key,
                window=window,
            ),
        )

    async def page(
        self, key: ConversationKey, /, *, request: PageRequest, ctx: StateContext = NO_CONTEXT
    ) -> HistoryPage:
        """Carry out `TranscriptStore.page`."""
        return await self._read(
            lambda tx: reading.read_page(tx, key, request, self._now(ctx)),
            ctx,
            Needs(now=self._now(ctx), conversation=key, page=request),
        )

    async def export(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> AsyncIterator[RowBatch]:
        """Carry out `TranscriptStore.export`."""
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
            Needs(
                now=self._now(ctx),
                conversation=key,
                session_ids=() if session_id is None else (session_id,),
                rows_above=above,
                rows_limit=EXPORT_BATCH,
            ),
        )
