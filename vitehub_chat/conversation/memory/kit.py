"""Memory kit: what all turns of an agent share to archive messages."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Self

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.flushing import Flush, FlushSetting
from vitehub_chat.conversation.memory.flush import MemoryFlush
from vitehub_chat.conversation.memory.inventory import NoteInventory
from vitehub_chat.conversation.memory.notes import NoteWriter
from vitehub_chat.conversation.memory.sinks import MakeSink, MemorySinkSetting, find_sink
from vitehub_chat.formatting.memory_sections import flush_id_of
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.memory_policy import MemoryPolicy
from vitehub_chat.model.model_messages import is_blank, to_model_messages
from vitehub_chat.model.rows import Row
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import Recorded


@attrs.frozen(kw_only=True, eq=False)
class MemoryKit:
    """Archives messages by one policy.

    Attributes:
        policy: What was decided.
        state: Where it is kept how far a flush is.
        clock: What days are told by.
        make_sink: Gives a conversation its sink.
    """

    policy: MemoryPolicy
    state: AgentState
    clock: Clock
    make_sink: MakeSink

    @classmethod
    async def open(cls, policy: MemoryPolicy, *, state: AgentState, clock: Clock) -> Self:
        """Find the sink, which may import and read files, and return the kit.

        Raises:
            ConfigError: The sink cannot be used here.
        """
        make_sink = await asyncio.to_thread(find_sink, policy)
        return cls(policy=policy, state=state, clock=clock, make_sink=make_sink)

    def flush(self, setting: FlushSetting) -> Flush:
        """Return what archives the batches of one turn."""
        return MemoryFlush(
            policy=self.policy,
            summaries=self.state.summaries,
            setting=setting,
            now=self._now,
            writer=self._writer,
        )

    async def keep_turn(self, recorded: Recorded, answer: Row, ids: events.Ids) -> None:
        """Append a turn that is finished, if every turn is to be; a failure is told alone.

        Args:
            recorded: What was stored before it was answered.
            answer: The answer as it is stored.
            ids: What events are about.
        """
        rows = (*recorded.rows, answer)
        shown = sorted((row for row in rows if not is_blank(row.message)), key=_seq)
        if not self.policy.append_every_turn or recorded.session is None or not shown:
            return
        scope = ConversationKey.decode(recorded.session.conversation)
        session_id = recorded.session.session_id
        first, last = shown[0].seq, shown[-1].seq
        messages = to_model_messages([row.message for row in shown])
        flush_id = flush_id_of(f"turn {scope.encode()}", session_id, first, last, messages)
        try:
            writer = self._writer(scope)
            now = self._now()
            record = await writer.inventory.begin(flush_id, session_id, now.date())
            await writer.note(
                record, heading="Turn", messages=messages, from_seq=first, to_seq=last, now=now
            )
        except Exception as error:  # noqa: BLE001 - the turn is recorded, whatever becomes of this
            events.memory_flush_failed(error, step="turn", flush_id=flush_id, **ids)
        else:
            events.memory_flushed(
                flush_id=flush_id, messages=len(messages), from_seq=first, to_seq=last, **ids
            )

    def _writer(self, scope: ConversationKey) -> NoteWriter:
        setting = MemorySinkSetting(conversation=scope, values=self.state.values)
        return NoteWriter(
            sink=self.make_sink(setting),
            inventory=NoteInventory(self.state.values, scope),
            limit=self.policy.note_timeout,
        )

    def _now(self) -> datetime:
        """Return the time in the zone of the notes."""
        return self.clock.now().astimezone(self.policy.timezone)


def _seq(row: Row) -> int:
    return row.seq
