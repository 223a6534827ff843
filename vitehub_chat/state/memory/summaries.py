"""The table of manual summaries, in memory."""

from __future__ import annotations

from vitehub_chat.state.memory.indexed import Index, Indexed, Journal
from vitehub_chat.state.records import SummaryRecord


class MemorySummaries:
    """Manual summaries by conversation and session."""

    def __init__(self, journal: Journal) -> None:
        self._conversations: Index[tuple[int, int], SummaryRecord] = Index(
            lambda each: [each.conversation_key], lambda each: each.session_key
        )
        self._summaries: Indexed[tuple[int, int], SummaryRecord] = Indexed(
            journal, self._conversations
        )

    def __len__(self) -> int:
        return len(self._summaries)

    def get(self, conversation_key: int, session_key: int, /) -> SummaryRecord | None:
        """Return the last one saved."""
        return self._summaries.get((conversation_key, session_key))

    def put(self, summary: SummaryRecord, /) -> None:
        """Save one in place of the last."""
        self._summaries.put((summary.conversation_key, summary.session_key), summary)

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        """Delete those of a conversation, or of one session, and count them."""
        keys = self._conversations.keys(conversation_key)
        doomed = [key for key in keys if session_key in {None, key[1]}]
        for key in doomed:
            self._summaries.remove(key)
        return len(doomed)
