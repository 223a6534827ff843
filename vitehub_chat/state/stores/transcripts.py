"""Stored messages, as the contract offers them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

import attrs

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import HistoryPage, MessageRange, Row, Truncated, TurnPage
from vitehub_chat.state.contract import NO_CONTEXT, StateContext
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.row_requests import (
    AgeLimit,
    Pruned,
    PruneRequest,
    RangeRequest,
    TruncateRequest,
    TurnsRequest,
)
from vitehub_chat.state.steps import (
    indexing,
    pruning,
    reading,
    recording,
    removing,
    replacing,
    truncating,
)
from vitehub_chat.state.steps.visible import FIRST_SLICE
from vitehub_chat.state.stores.shrinking import shrink_once
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
            lambda tx, now: recording.append_rows(tx, rows, session, None, self._writing(ctx, now)),
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
        not_older_than: AgeLimit | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Sequence[Row]:
        """Carry out `TranscriptStore.get`."""
        return await self._read(
            lambda tx, now: reading.get_rows(tx, key, message_ids, not_older_than, now),
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
            lambda tx, now: reading.window_of(tx, key, session, window, now),
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
        return await shrink_once(
            lambda limit: self._page(key, attrs.evolve(request, limit=limit), ctx), request.limit
        )

    async def _page(
        self, key: ConversationKey, request: PageRequest, ctx: StateContext
    ) -> HistoryPage:
        return await self._read(
            lambda tx, now: reading.read_page(tx, key, request, now),
            ctx,
            Needs(now=self._now(ctx), conversation=key, page=request),
        )

    async def export(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None = None,
        not_older_than: AgeLimit | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> AsyncIterator[RowBatch]:
        """Carry out `TranscriptStore.export`."""
        last: int | None = 0
        while last is not None:
            batch, last = await self._batch(key, session_id, last, not_older_than, ctx)
            yield batch

    async def range(
        self, key: ConversationKey, /, *, request: RangeRequest, ctx: StateContext = NO_CONTEXT
    ) -> MessageRange:
        """Carry out `TranscriptStore.range`."""
        around = () if request.around is None else (request.around,)
        return await self._read(
            lambda tx, now: reading.read_range(tx, key, request, now),
            ctx,
            self._needs(key, request.session_id, ctx, *around),
        )

    async def turns(
        self, key: ConversationKey, /, *, request: TurnsRequest, ctx: StateContext = NO_CONTEXT
    ) -> TurnPage:
        """Carry out `TranscriptStore.turns`."""
        return await self._read(
            lambda tx, now: indexing.read_turns(tx, key, request, now),
            ctx,
            Needs(now=self._now(ctx), conversation=key, turns=request),
        )

    async def replace(
        self,
        key: ConversationKey,
        /,
        *,
        row: NewRow,
        session_id: str | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Row:
        """Carry out `TranscriptStore.replace`."""
        return await self._write(
            lambda tx, now: replacing.replace_message(tx, key, session_id, row, now),
            ctx,
            self._needs(key, session_id, ctx, *ids_of([row])),
        )

    async def delete(
        self,
        key: ConversationKey,
        /,
        *,
        message_id: str,
        session_id: str | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> int:
        """Carry out `TranscriptStore.delete`."""
        return await self._write(
            lambda tx, now: removing.delete_message(
                tx, key, session_id, message_id, self._writing(ctx, now)
            ),
            ctx,
            self._needs(key, session_id, ctx, message_id),
        )

    async def truncate(
        self, key: ConversationKey, /, *, request: TruncateRequest, ctx: StateContext = NO_CONTEXT
    ) -> Truncated:
        """Carry out `TranscriptStore.truncate`."""
        claim_key = truncating.truncate_claim(key, request)
        lock_keys = () if claim_key is None else (truncating.truncate_lock(key),)
        needs = self._needs(key, request.session_id, ctx, request.message_id)
        return await self._write(
            lambda tx, now: truncating.truncate(tx, key, request, self._writing(ctx, now)),
            ctx,
            attrs.evolve(needs, lock_keys=lock_keys, claim_key=claim_key, has_open=True),
        )

    async def prune(
        self, key: ConversationKey, /, *, request: PruneRequest, ctx: StateContext = NO_CONTEXT
    ) -> Pruned:
        """Carry out `TranscriptStore.prune`."""
        pruning.check_prune(request, self._runner.retention)
        needs = self._needs(key, request.session_id, ctx)
        return await self._write(
            lambda tx, now: pruning.prune(tx, key, request, now),
            ctx,
            attrs.evolve(needs, rows_above=0, rows_limit=FIRST_SLICE),
        )

    async def _batch(
        self,
        key: ConversationKey,
        session_id: str | None,
        above: int,
        age: AgeLimit | None,
        ctx: StateContext,
    ) -> tuple[RowBatch, int | None]:
        return await shrink_once(
            lambda limit: self._rows_above(key, session_id, above, limit, age, ctx), EXPORT_BATCH
        )

    async def _rows_above(
        self,
        key: ConversationKey,
        session_id: str | None,
        above: int,
        limit: int,
        age: AgeLimit | None,
        ctx: StateContext,
    ) -> tuple[RowBatch, int | None]:
        return await self._read(
            lambda tx, now: reading.read_batch(tx, key, session_id, above, limit, age, now),
            ctx,
            attrs.evolve(self._needs(key, session_id, ctx), rows_above=above, rows_limit=limit),
        )
