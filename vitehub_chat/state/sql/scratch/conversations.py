"""The table of conversations as a step sees it."""

from __future__ import annotations

import attrs

from vitehub_chat.state.records import ConversationRecord
from vitehub_chat.state.sql.coverage import EDGE, Span
from vitehub_chat.state.sql.known import ConversationPart
from vitehub_chat.state.sql.looks.look import Miss
from vitehub_chat.state.sql.numbers import ReservationLook
from vitehub_chat.state.sql.scratch.work import Work


class ScratchConversations:
    """Conversations and their counters."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def get(self, encoded: str, /) -> ConversationRecord | None:
        """Return a conversation by its encoded key."""
        return self._work.conversation(encoded).record

    def ensure(self, encoded: str, /) -> ConversationRecord:
        """Return a conversation, created with its first use."""
        part = self._work.conversation(encoded)
        if part.record is not None:
            return part.record
        key = self._work.numbers.take("conversation")
        if key is None:
            raise Miss(ReservationLook("conversation", encoded))
        part.coverage.add((None, None), Span(0, EDGE))
        part.has_sessions = True
        created = ConversationRecord(key=key, encoded=encoded, last_seq=0, generation=0)
        return self._put(part, created)

    def allocate(self, key: int, count: int, /) -> int:
        """Take `count` numbers and return the first; numbers are never used again."""
        part, old = self._existing(key)
        self._put(part, attrs.evolve(old, last_seq=old.last_seq + count))
        return old.last_seq + 1

    def next_generation(self, key: int, /) -> int:
        """Raise the generation and return it."""
        part, old = self._existing(key)
        return self._put(part, attrs.evolve(old, generation=old.generation + 1)).generation

    def _existing(self, key: int) -> tuple[ConversationPart, ConversationRecord]:
        part = self._work.conversation_of(key)
        if part.record is None:
            raise KeyError(key)
        return part, part.record

    def _put(self, part: ConversationPart, record: ConversationRecord) -> ConversationRecord:
        self._work.note(("conversation", part.encoded, ""), part.record)
        part.record = record
        return record
