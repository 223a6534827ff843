"""Notes: writing one section once, however often it is begun."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import attrs

from vitehub_chat.conversation.control import guarded
from vitehub_chat.conversation.memory.inventory import FlushRecord, NoteInventory
from vitehub_chat.formatting.memory_sections import Heading, section_of
from vitehub_chat.model.memory_policy import MemorySink
from vitehub_chat.model.messages import Message


@attrs.frozen(kw_only=True)
class NoteWriter:
    """Writes the sections of one conversation.

    Attributes:
        sink: Where they go.
        inventory: Which there are.
        limit: How long one may take.
    """

    sink: MemorySink
    inventory: NoteInventory
    limit: timedelta

    async def note(
        self,
        record: FlushRecord,
        *,
        heading: Heading,
        messages: Sequence[Message],
        from_seq: int,
        to_seq: int,
        now: datetime,
    ) -> FlushRecord:
        """Append a section to the day of its record, unless that is done, and note that it is.

        Raises:
            TimeoutError: The sink took too long; it may have written all the same.
            Exception: The sink or the state failed.
        """
        if record.is_noted:
            return record
        section = section_of(
            heading,
            messages,
            flush_id=record.flush_id,
            from_seq=from_seq,
            to_seq=to_seq,
            now=now,
        )
        async with asyncio.timeout(self.limit.total_seconds()):
            with guarded():
                await self.sink.append(section, date=record.date, flush_id=record.flush_id)
        return await self.inventory.go_on(record, is_noted=True)
