"""Clearing: what was said is deleted, and the notes that quote it are listed or deleted, too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.control import guarded
from vitehub_chat.conversation.memory.inventory import ListedNote, NoteInventory
from vitehub_chat.conversation.memory.sinks import (
    PATH,
    MemorySinkSetting,
    find_sink,
    removing,
)
from vitehub_chat.errors import ChatBusyError, ConfigError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.memory_policy import MemoryNote, MemoryPolicy, RemovingSink
from vitehub_chat.state.contract import AgentState


class Cleared(dict[str, int]):
    """How much was deleted, by store.

    Attributes:
        notes: The sections of notes that quote what was deleted; those that were deleted with it
            where that was asked for.
    """

    def __init__(self, counts: Mapping[str, int], notes: Iterable[MemoryNote] = ()) -> None:
        """Keep counts and notes."""
        super().__init__(counts)
        self.notes = tuple(notes)


@attrs.frozen
class Clearing:
    """Deletes what was said in a session, or in a whole conversation.

    Attributes:
        session_id: The session; None is the whole conversation.
        policy: Where its notes are, or None.
    """

    state: AgentState
    key: ConversationKey
    session_id: str | None
    policy: MemoryPolicy | None

    async def clear(self, *, delete_session: bool, delete_notes: bool) -> Cleared:
        """Delete what was said; list its notes if the session goes, delete them if asked to.

        Notes go last. Broken off in between, the same call goes on where it was.

        Raises:
            ChatBusyError: A turn runs here (`turn_in_progress`); nothing was deleted.
            ConfigError: Notes are to be deleted and the sink cannot; nothing was deleted.
        """
        listed = await self._listed() if delete_session or delete_notes or self.policy else ()
        notes = [each.note for each in listed]
        if not delete_notes:
            counts = await self._clear(delete_session=delete_session)
            if not delete_session and self.session_id is None:
                await self._inventory.restore(listed)
            return Cleared(counts, notes if delete_session else ())
        planned = await self._inventory.planned_removal(self.session_id)
        notes = list(dict.fromkeys([*planned, *notes]))
        sink = await self._sink() if notes else None
        await self._inventory.plan_removal(self.session_id, notes)
        try:
            counts = await self._clear(delete_session=delete_session)
        except ChatBusyError:
            await self._inventory.plan_removal(self.session_id, planned)
            raise
        await self._remove(sink, notes)
        return Cleared(counts, notes)

    async def go_on(self) -> None:
        """Delete the notes that a call before was about to delete when it broke off."""
        planned = await self._inventory.planned_removal(self.session_id)
        if planned:
            await self._remove(await self._sink(), planned)

    @property
    def _inventory(self) -> NoteInventory:
        return NoteInventory(self.state.values, self.key)

    async def _listed(self) -> Sequence[ListedNote]:
        found = await self._inventory.listed()
        return [each for each in found if self.session_id in {None, each.session_id}]

    async def _clear(self, *, delete_session: bool) -> Mapping[str, int]:
        counts = await self.state.sessions.clear(
            self.key, session_id=self.session_id, delete_session=delete_session
        )
        events.history_cleared(counts=counts, key=self.key, session_id=self.session_id)
        return counts

    async def _remove(self, sink: RemovingSink | None, notes: Sequence[MemoryNote]) -> None:
        if sink is not None:
            for note in notes:
                with guarded():
                    await sink.remove(note.flush_id, date=note.date)
        await self._inventory.forget(notes)
        await self._inventory.plan_removal(self.session_id, ())

    async def _sink(self) -> RemovingSink:
        if self.policy is None:
            raise ConfigError(
                "is needed to delete notes", path="memory", hint="say where they are kept"
            )
        make_sink = await asyncio.to_thread(find_sink, self.policy)
        setting = MemorySinkSetting(conversation=self.key, values=self.state.values)
        found = removing(make_sink(setting))
        if found is None:
            raise ConfigError(
                "cannot delete notes", path=PATH, hint="see RemovingSink, or keep the notes"
            )
        return found
