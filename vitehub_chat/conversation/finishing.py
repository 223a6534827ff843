"""Finishing: making the end of a granted run durable, and pruning with it."""

from __future__ import annotations

import attrs

from vitehub_chat.conversation.control import LOCK_LOST, TurnControl, settle, was_cancelled
from vitehub_chat.conversation.lease import LEASE
from vitehub_chat.conversation.setting import RunSetting, write_surely
from vitehub_chat.errors import StateClosedError, StateConflictError, StateUnavailableError
from vitehub_chat.model.plans import TurnPlan
from vitehub_chat.state.context import StateContext
from vitehub_chat.state.row_requests import Pruned, PruneRequest
from vitehub_chat.state.values import Finished, NewRow, TurnEnd


@attrs.frozen(kw_only=True)
class Finishing:
    """The last write of one granted run.

    Attributes:
        ticket_id: The name of the run.
        context: What it writes under.
    """

    setting: RunSetting
    ticket_id: str
    control: TurnControl
    context: StateContext

    async def record(
        self, *, answer: NewRow, end: TurnEnd, plan: TurnPlan, prune: PruneRequest | None
    ) -> Finished:
        """Store an answer and how its turn ended, prune, and pass the lock on, all at once.

        If the pruning is what fails, the turn ends without it.

        Raises:
            StateConflictError: The lock was lost (`lock_lost`); nothing was written.
            StateError: The state failed.
        """
        if self.control.reason == LOCK_LOST:
            raise StateConflictError("the lock of this turn was lost", code=LOCK_LOST)
        try:
            return await self._write(answer, end, plan, prune)
        except StateConflictError:
            if await self._ended_unheard():
                return Finished(row=None)
            raise
        except (StateUnavailableError, StateClosedError):
            raise
        except Exception as error:
            if prune is None:
                raise
            finished = await self._write(answer, end, plan, None)
            return attrs.evolve(finished, pruned=Pruned(error=error))

    async def _write(
        self, answer: NewRow, end: TurnEnd, plan: TurnPlan, prune: PruneRequest | None
    ) -> Finished:
        setting = self.setting
        return await write_surely(
            lambda: setting.turns.finish(
                self.ticket_id,
                answer=answer if setting.has_state else None,
                end=end,
                owner=setting.successor(),
                lease=LEASE,
                plan=plan,
                prune=prune,
                ctx=self.context,
            ),
            self.control,
        )

    async def _ended_unheard(self) -> bool:
        """Tell whether a write finished the turn whose answer the end of the loop cut off."""
        if not was_cancelled():
            return False
        outcome = await settle(self.setting.turns.outcome(self.ticket_id), self.control)
        return outcome.state == "ended"
