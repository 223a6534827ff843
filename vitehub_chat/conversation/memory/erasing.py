"""Erasing: the notes that quote the sessions of one person go with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import attrs

from vitehub_chat.conversation.control import guarded
from vitehub_chat.conversation.memory.inventory import NoteInventory
from vitehub_chat.conversation.memory.sinks import (
    MakeSink,
    MemorySinkSetting,
    StateSink,
    find_sink,
    removing,
)
from vitehub_chat.model.memory_policy import MemoryPolicy, RemovingSink
from vitehub_chat.model.rows import SessionInfo
from vitehub_chat.state.contract import AgentState


@attrs.frozen(kw_only=True)
class PersonNotes:
    """The notes of the sessions of one person.

    Attributes:
        policy: Where the notes of one agent are, or None.
        agent: That agent. Of others only what is kept in the state is known.
    """

    state: AgentState
    tenant: str | None
    user_key: str
    policy: MemoryPolicy | None
    agent: str | None

    async def remove(self) -> int:
        """Remove the notes and return how many there were.

        To be called before the sessions go, so that repeating finds what is left. Notes in a sink
        that cannot remove stay.

        Raises:
            ConfigError: The sink of the agent cannot be used here.
        """
        make_sink: MakeSink | None = None
        if self.policy is not None:
            make_sink = await asyncio.to_thread(find_sink, self.policy)
        count = 0
        async for session in self._sessions():
            count += await self._remove_of(session, make_sink)
        return count

    async def _remove_of(self, session: SessionInfo, make_sink: MakeSink | None) -> int:
        setting = MemorySinkSetting(conversation=session.conversation, values=self.state.values)
        sinks: list[RemovingSink] = [StateSink(setting)]
        if make_sink is not None and session.conversation.agent == self.agent:
            found = removing(make_sink(setting))
            sinks.extend([] if found is None or isinstance(found, StateSink) else [found])
        inventory = NoteInventory(self.state.values, session.conversation)
        listed = await inventory.listed()
        notes = [each.note for each in listed if each.session_id == session.session_id]
        for note in notes:
            for sink in sinks:
                with guarded():
                    await sink.remove(note.flush_id, date=note.date)
        await inventory.forget(notes)
        return len(notes)

    async def _sessions(self) -> AsyncIterator[SessionInfo]:
        cursor: str | None = None
        while True:
            page = await self.state.sessions.list(
                self.tenant, agent=None, user_key=self.user_key, limit=100, cursor=cursor
            )
            for session in page.items:
                yield session
            cursor = page.next_cursor
            if cursor is None:
                return
