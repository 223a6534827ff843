"""Roll store: the rolling state of the session of one turn, written under its lock."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rolling import Rolling, RollingWrite
from vitehub_chat.state.context import StateContext
from vitehub_chat.state.contract_documents import SummaryStore


@attrs.frozen(kw_only=True)
class RollStore:
    """Reads and changes the rolling state of one session.

    Attributes:
        conversation: The conversation that has the rows of the session.
        session_id: Its id, or None for the unnamed one.
        context: The context under which the turn writes.
    """

    conversation: ConversationKey
    session_id: str | None
    context: StateContext
    _summaries: SummaryStore = attrs.field(alias="summaries")

    async def read(self) -> Rolling | None:
        """Return the state as it is now; None if the session is gone."""
        return await self._summaries.get_rolling(self.conversation, session_id=self.session_id)

    async def commit(
        self,
        since: Rolling,
        *,
        summary: str,
        anchor: int,
        system_seqs: Sequence[int],
        model: str | None,
        checkpoints_kept: int,
    ) -> RollingWrite:
        """Replace the summary, see `SummaryStore.commit_roll`."""
        return await self._summaries.commit_roll(
            self.conversation,
            session_id=self.session_id,
            since=since,
            summary=summary,
            anchor=anchor,
            system_seqs=system_seqs,
            model=model,
            checkpoints_kept=checkpoints_kept,
            ctx=self.context,
        )

    async def note_failure(self, since: Rolling, error: str) -> RollingWrite:
        """Count a turn that could not condense, see `SummaryStore.note_failure`."""
        return await self._summaries.note_failure(
            self.conversation,
            session_id=self.session_id,
            since=since,
            error=error,
            ctx=self.context,
        )

    async def set_correction(self, since: Rolling, correction: float) -> RollingWrite:
        """Set by what estimates are multiplied from now on."""
        return await self._summaries.set_correction(
            self.conversation,
            session_id=self.session_id,
            since=since,
            correction=correction,
            ctx=self.context,
        )
