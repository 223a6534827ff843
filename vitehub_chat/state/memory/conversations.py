"""The table of conversations, in memory."""

from __future__ import annotations

import attrs

from vitehub_chat.state.memory.indexed import Counter, Index, Indexed, Journal
from vitehub_chat.state.records import ConversationRecord


class MemoryConversations:
    """Conversations and their counters."""

    def __init__(self, journal: Journal) -> None:
        self._keys = Counter(journal)
        self._by_text: Index[int, ConversationRecord] = Index(
            lambda each: [each.encoded], lambda each: each.key
        )
        self._conversations: Indexed[int, ConversationRecord] = Indexed(journal, self._by_text)

    def __len__(self) -> int:
        return len(self._conversations)

    def get(self, encoded: str, /) -> ConversationRecord | None:
        """Return a conversation by its encoded key."""
        return self._conversations.get(self._by_text.first(encoded))

    def encoded(self, key: int, /) -> str:
        """Return the encoded key of a conversation."""
        return self._existing(key).encoded

    def ensure(self, encoded: str, /) -> ConversationRecord:
        """Return a conversation, created with its first use."""
        found = self.get(encoded)
        if found is None:
            key = self._keys.next()
            found = ConversationRecord(key=key, encoded=encoded, last_seq=0, generation=0)
            self._conversations.put(key, found)
        return found

    def allocate(self, key: int, count: int, /) -> int:
        """Take `count` numbers and return the first; numbers are never used again."""
        old = self._existing(key)
        self._conversations.put(key, attrs.evolve(old, last_seq=old.last_seq + count))
        return old.last_seq + 1

    def next_generation(self, key: int, /) -> int:
        """Raise the generation and return it."""
        old = self._existing(key)
        self._conversations.put(key, attrs.evolve(old, generation=old.generation + 1))
        return old.generation + 1

    def _existing(self, key: int) -> ConversationRecord:
        found = self._conversations.get(key)
        if found is None:
            raise KeyError(key)
        return found
