"""Inventory: which sections were written of a conversation, so that each is written once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, Final, cast

import attrs

from vitehub_chat.model.json_text import Json
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.memory_policy import MemoryNote
from vitehub_chat.state.contract_documents import KeyValue

FLUSH: Final = "memory.flush:"
DAYS: Final = "memory.days"
DAY: Final = "memory.day:"
REMOVING: Final = "memory.removing:"


@attrs.frozen(kw_only=True)
class FlushRecord:
    """How far a flush is.

    Attributes:
        date: The day under which it is filed, also if it ends on a later one.
        is_noted: The section is written.
        is_extracted: The entries are.
    """

    flush_id: str
    session_id: str | None
    date: date
    is_noted: bool = False
    is_extracted: bool = False

    @property
    def note(self) -> MemoryNote:
        """The section."""
        return MemoryNote(flush_id=self.flush_id, date=self.date)


@attrs.frozen
class NoteInventory:
    """The sections of one conversation, in the values of the Agent State.

    It has ids, days and session ids, no text. It is erased with the conversation.
    """

    values: KeyValue
    conversation: ConversationKey

    async def begin(self, flush_id: str, session_id: str | None, today: date) -> FlushRecord:
        """Return how far a flush is; one that was never begun begins today."""
        found = await self._get(flush_id)
        if found is not None:
            return found
        record = FlushRecord(flush_id=flush_id, session_id=session_id, date=today)
        # First what lists it, then itself: what is repeated in the list counts once.
        await self._list(record)
        await self._set_if_absent(record)
        return await self._get(flush_id) or record

    async def go_on(self, record: FlushRecord, **done: Any) -> FlushRecord:
        """Note what is done."""
        changed = attrs.evolve(record, **done)
        await self.values.set(
            FLUSH + record.flush_id, value=_to_json(changed), scope=self.conversation
        )
        return changed

    async def records(self) -> tuple[FlushRecord, ...]:
        """Return all that was begun, by day."""
        days = dict.fromkeys(await self.values.get_list(DAYS, scope=self.conversation))
        ids: dict[str, None] = {}
        for day in sorted(map(str, days)):
            listed = await self.values.get_list(f"{DAY}{day}", scope=self.conversation)
            ids.update(dict.fromkeys(map(str, listed)))
        found = [await self._get(flush_id) for flush_id in ids]
        return tuple(record for record in found if record is not None)

    async def restore(self, records: Iterable[FlushRecord]) -> None:
        """Keep records again that were deleted with what was said."""
        for record in records:
            if await self._get(record.flush_id) is None:
                await self._list(record)
                await self._set_if_absent(record)

    async def forget(self, flush_id: str) -> None:
        """Forget a section that was removed."""
        await self.values.delete(FLUSH + flush_id, scope=self.conversation)

    async def plan_removal(self, session_id: str | None, notes: Iterable[MemoryNote]) -> None:
        """Note what is about to be removed, where it outlasts the conversation; or nothing."""
        planned: Json = [[note.flush_id, note.date.isoformat()] for note in notes]
        if planned:
            await self.values.set(self._removing(session_id), value=planned, scope=self._agent)
        else:
            await self.values.delete(self._removing(session_id), scope=self._agent)

    async def planned_removal(self, session_id: str | None) -> tuple[MemoryNote, ...]:
        """Return what was about to be removed when a removal broke off."""
        found = await self.values.get(self._removing(session_id), scope=self._agent)
        planned = cast(list[list[str]], found or [])
        return tuple(
            MemoryNote(flush_id=flush_id, date=date.fromisoformat(day)) for flush_id, day in planned
        )

    @property
    def _agent(self) -> ConversationKey:
        return ConversationKey(self.conversation.tenant, self.conversation.agent, None, None)

    def _removing(self, session_id: str | None) -> str:
        session = "-" if session_id is None else f"={session_id}"
        text = f"{self.conversation.encode()}\n{session}"
        return REMOVING + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    async def _get(self, flush_id: str) -> FlushRecord | None:
        found = await self.values.get(FLUSH + flush_id, scope=self.conversation)
        return None if not isinstance(found, Mapping) else _from_json(flush_id, found)

    async def _set_if_absent(self, record: FlushRecord) -> None:
        await self.values.set_if_absent(
            FLUSH + record.flush_id, value=_to_json(record), scope=self.conversation
        )

    async def _list(self, record: FlushRecord) -> None:
        day = record.date.isoformat()
        key = DAY + day
        count = await self.values.append_to_list(
            key, items=[record.flush_id], scope=self.conversation
        )
        if count == 1 or day not in await self.values.get_list(DAYS, scope=self.conversation):
            await self.values.append_to_list(DAYS, items=[day], scope=self.conversation)


def _to_json(record: FlushRecord) -> Json:
    return {
        "date": record.date.isoformat(),
        "session": record.session_id,
        "noted": record.is_noted,
        "extracted": record.is_extracted,
    }


def _from_json(flush_id: str, fields: Mapping[str, Any]) -> FlushRecord:
    return FlushRecord(
        flush_id=flush_id,
        session_id=fields["session"],
        date=date.fromisoformat(fields["date"]),
        is_noted=fields["noted"],
        is_extracted=fields["extracted"],
    )
