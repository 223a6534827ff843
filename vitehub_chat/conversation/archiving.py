"""Archiving: what pruning is about to take goes into the memory first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

import attrs

from vitehub_chat.conversation.flushing import Flush, FlushBatch
from vitehub_chat.conversation.retention import Pruner
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.model_messages import is_blank, to_model_messages
from vitehub_chat.model.rows import Row
from vitehub_chat.state.contract import AgentState


@attrs.frozen(kw_only=True)
class Archive:
    """Takes rows of one conversation into the memory before they are pruned.

    What a summary covers was taken there before it was condensed.

    Attributes:
        key: The conversation that has the rows.
        flush: What takes messages into the memory.
    """

    state: AgentState
    key: ConversationKey
    flush: Flush

    async def take(
        self,
        pruner: Pruner,
        *,
        session_id: str | None = None,
        coming: Sequence[Row] = (),
        in_passing: bool = False,
    ) -> None:
        """Flush what a pruner would take now; from then on it takes nothing else.

        What could not be flushed stays, unless the policy of the memory goes on after errors.

        Args:
            pruner: It is told what may go.
            session_id: Narrows to one session, None is the whole conversation.
            coming: Rows that will be stored when it prunes.
            in_passing: Only what `Pruner.request` in passing takes.

        Raises:
            StateConflictError: The lock of the turn was lost.
        """
        said_before = pruner.oldest if in_passing else None
        rows = await find_settled(self.state, self.key, session_id, said_before)
        uncovered = await find_uncovered(self.state, self.key, rows)
        chosen = set(pruner.choose([*rows, *coming], uncovered)) & set(uncovered)
        ready: set[int] = set()
        for batch in _by_session([row for row in rows if row.seq in chosen]):
            if await self._flush(batch):
                ready.update(row.seq for row in batch)
        pruner.archived = frozenset(ready)

    async def _flush(self, rows: Sequence[Row]) -> bool:
        """Flush rows of one session, and tell whether they may go."""
        said = [row.message for row in rows if not is_blank(row.message)]
        session_id = rows[0].session_id
        rolling = await self.state.summaries.get_rolling(self.key, session_id=session_id)
        if rolling is None or not said:
            return True
        status = await self.flush.flush(
            FlushBatch(
                conversation=self.key,
                session_id=session_id,
                from_seq=rows[0].seq,
                to_seq=rows[-1].seq,
                messages=to_model_messages(said),
                rolling=rolling,
            )
        )
        return status != "failed" or not self.flush.blocks


async def find_settled(
    state: AgentState,
    key: ConversationKey,
    session_id: str | None,
    said_before: datetime | None = None,
) -> list[Row]:
    """Return the rows of a conversation, without answers that are being written.

    With a time it ends with the first batch of which nothing was said before it.
    """
    rows: list[Row] = []
    async for batch in state.transcripts.export(key, session_id=session_id):
        rows.extend(row for row in batch.rows if row.status != "pending")
        if said_before and all(row.said_at >= said_before for row in batch.rows):
            break
    return rows


async def find_uncovered(
    state: AgentState, key: ConversationKey, rows: Sequence[Row]
) -> Collection[int]:
    """Return the numbers of the rows that no rolled summary covers."""
    anchors: dict[str | None, int] = {}
    for session_id in {row.session_id for row in rows}:
        rolled = await state.summaries.get_rolling(key, session_id=session_id)
        anchors[session_id] = 0 if rolled is None else rolled.anchor
    return [row.seq for row in rows if row.seq >= anchors[row.session_id]]


def _by_session(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for session_id in dict.fromkeys(row.session_id for row in rows):
        yield [row for row in rows if row.session_id == session_id]
