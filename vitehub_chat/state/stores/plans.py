"""Plans of turns, as the contract offers them."""

from __future__ import annotations

import attrs

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.plans import TurnPlan
from vitehub_chat.state.contract import NO_CONTEXT, StateContext
from vitehub_chat.state.steps import planning
from vitehub_chat.state.stores.store import Store


class Plans(Store):
    """`PlanStore`."""

    async def get(
        self,
        key: ConversationKey,
        /,
        *,
        turn_id: str | None = None,
        session_id: str | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> TurnPlan | None:
        """Carry out `PlanStore.get`."""
        return await self._read(
            lambda tx, now: planning.get_plan(tx, key, turn_id, session_id, now),
            ctx,
            attrs.evolve(
                self._needs(key, session_id, ctx),
                documents=() if turn_id is None else (("plan", turn_id),),
                newest_documents=("plan",) if turn_id is None else (),
            ),
        )
