"""Inventory: which sections were written of a conversation, so that each is written once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence, Set
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


@attrs.frozen
class ListedNote:
    """A section and the session that it quotes."""

    note: MemoryNote
    session_id: str | None


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
        # First what lists it, then itself, or it would be written without being listed.
        await self._list(today, [[flush_id, session_id]])
        await self.values.set_if_absent(
            FLUSH + flush_id, value=_to_json(record), scope=self.conversation
        )
        return await self._get(flush_id) or record

    async def go_on(self, record: FlushRecord, **done: Any) -> FlushRecord:
        """Note what is done."""
        changed = attrs.evolve(record, **done)
        await self.values.set(
            FLUSH + record.flush_id, value=_to_json(changed), scope=self.conversation
        )
        return changed

    async def listed(self) -> tuple[ListedNote, ...]:
        """Return all sections that were begun, by day."""
        days = await self.values.get_list(DAYS, scope=self.conversation)
        found: dict[ListedNote, None] = {}
        for day in sorted({str(each) for each in days}):
            for item in await self.values.get_list(DAY + day, scope=self.conversation):
                flush_id, session_id = cast(list[Any], item)
                note = MemoryNote(flush_id=flush_id, date=date.fromisoformat(day))
                found[ListedNote(note, session_id)] = None
        return tuple(found)

    async def restore(self, listed: Iterable[ListedNote]) -> None:
        """List sections again that were forgotten with what was said."""
        by_day: dict[date, list[Json]] = {}
        for each in listed:
            by_day.setdefault(each.note.date, []).append([each.note.flush_id, each.session_id])
        for day, items in by_day.items():
            await self._list(day, items)

    async def forget(self, notes: Iterable[MemoryNote]) -> None:
        """Forget sections that were removed."""
        by_day: dict[date, set[str]] = {}
        for note in notes:
            by_day.setdefault(note.date, set()).add(note.flush_id)
            await self.values.delete(FLUSH + note.flush_id, scope=self.conversation)
        for day, ids in by_day.items():
            await self._unlist(DAY + day.isoformat(), ids)

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

    async def _list(self, day: date, items: Sequence[Json]) -> None:
        name = day.isoformat()
        count = await self.values.append_to_list(DAY + name, items=items, scope=self.conversation)
        is_new = count == len(items)
        if is_new or name not in await self.values.get_list(DAYS, scope=self.conversation):
            await self.values.append_to_list(DAYS, items=[name], scope=self.conversation)

    async def _unlist(self, key: str, ids: Set[str]) -> None:
        while True:
            listed = list(await self.values.get_list(key, scope=self.conversation))
            left = [item for item in listed if cast(list[Any], item)[0] not in ids]
            if left == listed or await self.values.compare_and_set(
                key, expected=listed, value=left, scope=self.conversation
            ):
                return


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
