"""Memory flush: a batch goes into the memory before it is condensed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.control import guarded
from vitehub_chat.conversation.flushing import FlushBatch, FlushSetting
from vitehub_chat.conversation.memory.extracting import Extractor
from vitehub_chat.conversation.memory.inventory import FlushRecord
from vitehub_chat.conversation.memory.notes import NoteWriter
from vitehub_chat.conversation.memory.sinks import taking_entries
from vitehub_chat.errors import StateConflictError
from vitehub_chat.formatting.memory_sections import flush_id_of
from vitehub_chat.model import observing
from vitehub_chat.model.context_policy import FlushStatus
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.memory_policy import MemoryEntry, MemoryPolicy
from vitehub_chat.model.rolling import PendingFlush
from vitehub_chat.state.contract_documents import SummaryStore

SECTION: Final = "Context compaction archive"


class _Refused(Exception):  # noqa: N818 - a way out, not a fault
    """The rolling state is another one than that of the batch."""


@attrs.frozen(kw_only=True)
class MemoryFlush:
    """Archives the batches of one turn.

    In this order: the batch is noted as pending, its section is written, what is worth remembering
    is extracted. So a crash anywhere is followed by the same flush with the same id, and whatever
    of it was done is not done again.

    Attributes:
        setting: The turn.
        now: Gives the time in the zone of the notes.
        writer: Gives what writes the sections of a conversation.
    """

    policy: MemoryPolicy
    summaries: SummaryStore
    setting: FlushSetting
    now: Callable[[], datetime]
    writer: Callable[[ConversationKey], NoteWriter]

    @property
    def blocks(self) -> bool:
        """Whether a batch that could not be flushed is not condensed in this turn."""
        return self.policy.on_error == "block"

    async def flush(self, batch: FlushBatch, /) -> FlushStatus:
        """Carry out `Flush.flush`.

        Raises:
            StateConflictError: The lock of the turn was lost.
        """
        flush_id = _pending_of(batch).flush_id
        try:
            with observing.span("chat.flush"):
                status = await self._flush(batch)
                observing.tell(messages=len(batch.messages), status=status)
                return status
        except StateConflictError:
            raise
        except Exception as error:  # noqa: BLE001 - told as an event, the policy says what follows
            self._tell_failed(error, "pending", flush_id)
            return "failed"

    async def _flush(self, batch: FlushBatch) -> FlushStatus:
        writer = self.writer(batch.conversation)
        extractor = self._extractor(writer)
        if not self.policy.daily_note and extractor is None:
            return "off"
        pending = _pending_of(batch)
        await self._set_pending(batch, pending)
        now = self.now()
        record = await writer.inventory.begin(pending.flush_id, batch.session_id, now.date())
        is_done = True
        if self.policy.daily_note:
            is_done, record = await self._note(writer, batch, record, now)
        if extractor is not None and not record.is_extracted:
            is_extracted = await self._extract(writer, extractor, batch, record, now)
            is_done = is_done and (is_extracted or self.policy.daily_note)
        return "done" if is_done else "failed"

    async def _set_pending(self, batch: FlushBatch, pending: PendingFlush) -> None:
        if batch.rolling.pending == pending:
            return
        written = await self.summaries.set_pending(
            batch.conversation,
            session_id=batch.session_id,
            since=batch.rolling,
            pending=pending,
            ctx=self.setting.context,
        )
        if written.refused is not None:
            raise _Refused(written.refused)

    async def _note(
        self, writer: NoteWriter, batch: FlushBatch, record: FlushRecord, now: datetime
    ) -> tuple[bool, FlushRecord]:
        try:
            noted = await writer.note(
                record,
                heading=SECTION,
                messages=batch.messages,
                from_seq=batch.from_seq,
                to_seq=batch.to_seq,
                now=now,
            )
        except Exception as error:  # noqa: BLE001 - told as an event, the policy says what follows
            self._tell_failed(error, "note", record.flush_id)
            return False, record
        if not record.is_noted:
            events.memory_flushed(
                flush_id=record.flush_id,
                messages=len(batch.messages),
                from_seq=batch.from_seq,
                to_seq=batch.to_seq,
                **self.setting.ids,
            )
        return True, noted

    async def _extract(
        self,
        writer: NoteWriter,
        extractor: Extractor,
        batch: FlushBatch,
        record: FlushRecord,
        now: datetime,
    ) -> bool:
        like = MemoryEntry(
            digest="",
            kind="fact",
            text="",
            created_at=now,
            session_id=batch.session_id,
            from_seq=batch.from_seq,
            to_seq=batch.to_seq,
            source=record.flush_id,
        )
        limit = self.policy.extract_timeout
        try:
            async with asyncio.timeout(limit.total_seconds()):
                with guarded():
                    added = await extractor.extract(batch.messages, like=like, deadline=now + limit)
            await writer.inventory.go_on(record, is_extracted=True)
        except Exception as error:  # noqa: BLE001 - told as an event, the policy says what follows
            self._tell_failed(error, "extract", record.flush_id)
            return False
        events.memory_extracted(entries=added, flush_id=record.flush_id, **self.setting.ids)
        return True

    def _extractor(self, writer: NoteWriter) -> Extractor | None:
        """Return what extracts; None if nothing is to be, or neither model nor sink is able to."""
        ask, sink = self.setting.ask, taking_entries(writer.sink)
        if not self.policy.extract or ask is None or sink is None:
            return None
        return Extractor(ask=ask, sink=sink)

    def _tell_failed(self, error: Exception, step: str, flush_id: str) -> None:
        events.memory_flush_failed(error, step=step, flush_id=flush_id, **self.setting.ids)


def _pending_of(batch: FlushBatch) -> PendingFlush:
    """Return a batch as it is noted; one that is noted already keeps its id."""
    known = batch.rolling.pending
    if known is not None and (known.from_seq, known.to_seq) == (batch.from_seq, batch.to_seq):
        return known
    flush_id = flush_id_of(
        batch.conversation.encode(),
        batch.session_id,
        batch.from_seq,
        batch.to_seq,
        batch.messages,
    )
    return PendingFlush(flush_id, batch.from_seq, batch.to_seq)
