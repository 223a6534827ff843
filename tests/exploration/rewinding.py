"""Rewinding: a store in memory that can be put back to where it was."""

from __future__ import annotations

from collections.abc import Callable

from vitehub_chat.model.clock import Clock
from vitehub_chat.state.memory.indexed import Journal
from vitehub_chat.state.memory.store import MemoryTables
from vitehub_chat.state.providers.memory import MemoryAgentState, open_memory


class LongJournal(Journal):
    """A journal that remembers how to undo the steps that were kept, too."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self._kept)

    def commit(self) -> None:
        """Keep a step, for now."""
        self._kept += self._inverses
        super().commit()

    def rewind(self, length: int) -> None:
        """Undo what was kept since the journal was so long."""
        while len(self._kept) > length:
            self._kept.pop()()


def rewindable_memory(clock: Clock) -> tuple[MemoryAgentState, LongJournal]:
    """Return a closed state with an empty store, and what rewinds it."""
    state, journal = open_memory("memory:", clock=clock), LongJournal()
    state._store._journal = journal
    state._store.tables = MemoryTables(journal)
    return state, journal
