"""The store in memory: all tables behind one lock, and stores that share a name."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakValueDictionary

from vitehub_chat.model.forking import ForkSafeLock
from vitehub_chat.model.ids import new_id
from vitehub_chat.state.memory.conversations import MemoryConversations
from vitehub_chat.state.memory.documents import MemoryDocuments
from vitehub_chat.state.memory.entries import MemoryEntries
from vitehub_chat.state.memory.indexed import Journal
from vitehub_chat.state.memory.locks import MemoryLocks
from vitehub_chat.state.memory.rows import MemoryRows
from vitehub_chat.state.memory.sessions import MemorySessions
from vitehub_chat.state.memory.summaries import MemorySummaries

T = TypeVar("T")


class MemoryTables:
    """The tables of one store, as the steps use them.

    Attributes:
        secret: The key of the store's cursors.
    """

    def __init__(self, journal: Journal) -> None:
        self.locks = MemoryLocks(journal)
        self.conversations = MemoryConversations(journal)
        self.sessions = MemorySessions(journal)
        self.entries = MemoryEntries(journal, self.locks, self.sessions)
        self.rows = MemoryRows(journal, self.conversations)
        self.summaries = MemorySummaries(journal)
        self.documents = MemoryDocuments(journal)
        self.secret = bytes.fromhex(new_id() + new_id())


class MemoryStore:
    """Tables that threads and event loops share.

    A step is short and never waits, so the lock around it is an ordinary one: it belongs to no
    event loop, and no task can be cancelled while it holds it.

    Attributes:
        tables: The tables; outside of a step they may change at any moment.
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._pid = os.getpid()
        self._journal = Journal()
        self.tables = MemoryTables(self._journal)

    def write(self, step: Callable[[MemoryTables], T], /) -> T:
        """Run a step; when it raises, everything it wrote is undone."""
        with self._lock:
            self._begin()
            try:
                answer = step(self.tables)
            except BaseException:
                self._journal.rollback()
                raise
            self._journal.commit()
            return answer

    def drop(self) -> None:
        """Begin anew with empty tables."""
        with self._lock:
            self.tables = MemoryTables(self._journal)

    def read(self, step: Callable[[MemoryTables], T], /) -> T:
        """Run a step that writes nothing; what it writes all the same is undone."""
        with self._lock:
            self._begin()
            try:
                return step(self.tables)
            finally:
                self._journal.rollback()

    def _begin(self) -> None:
        """Leave to a parent process what it runs: nobody here does, nor waits for it."""
        pid = os.getpid()
        if self._pid != pid:
            self.tables.entries.delete_open()
            self.tables.locks.delete_all()
            self._journal.commit()
            self._pid = pid


def store_named(name: str, /) -> MemoryStore:
    """Return the store of a name; without a name a new one that nobody else gets.

    A named store lives as long as somebody holds it.
    """
    if not name:
        return MemoryStore()
    with _naming:
        store = _stores.get(name)
        if store is None:
            store = _stores[name] = MemoryStore()
        return store


_naming = ForkSafeLock()
_stores: WeakValueDictionary[str, MemoryStore] = WeakValueDictionary()
