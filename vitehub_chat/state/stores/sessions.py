"""Sessions, as the contract offers them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import SessionInfo, SessionPage
from vitehub_chat.state.contract import NO_CONTEXT, StateContext
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.steps import clearing, listing, resolving
from vitehub_chat.state.stores.store import Store
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import SessionRef, SessionRequest


class Sessions(Store):
    """`SessionStore`."""

    async def resolve(
        self, session: SessionRequest, /, *, ctx: StateContext = NO_CONTEXT
    ) -> SessionRef:
        """Carry out `SessionStore.resolve`."""

        def step(tx: Transaction, now: int) -> SessionRef:
            found, is_new = resolving.resolve_session(tx, session, now)
            return resolving.ref_of(found, is_new=is_new)

        return await self._read(step, ctx, Needs(now=self._now(ctx), session=session))

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
        """Carry out `SessionStore.list`."""
        request = listing.ListRequest(
            tenant=tenant,
            agent=agent,
            user_key=user_key,
            conversation=conversation,
            limit=limit,
            cursor=cursor,
            updated_since=updated_since,
        )
        return await self._read(
            lambda tx, _now: listing.list_sessions(tx, request),
            ctx,
            Needs(now=self._now(ctx), conversation=conversation, sessions=request),
        )

    async def get(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> SessionInfo:
        """Carry out `SessionStore.get`."""
        return await self._read(
            lambda tx, _now: listing.get_session(tx, key, session_id),
            ctx,
            Needs(now=self._now(ctx), conversation=key, session_ids=(session_id,)),
        )

    async def rename(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        title: str | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> SessionInfo:
        """Carry out `SessionStore.rename`."""
        return await self._write(
            lambda tx, _now: listing.rename_session(tx, key, session_id, title),
            ctx,
            Needs(now=self._now(ctx), conversation=key, session_ids=(session_id,)),
        )

    async def clear(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None = None,
        delete_session: bool = False,
        ctx: StateContext = NO_CONTEXT,
    ) -> Mapping[str, int]:
        """Carry out `SessionStore.clear`."""
        return await self._write(
            lambda tx, now: clearing.clear(tx, key, session_id, now, delete_session=delete_session),
            ctx,
            attrs.evolve(self._needs(key, session_id, ctx), clears=True),
        )
