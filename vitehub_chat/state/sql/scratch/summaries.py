"""The table of manual summaries as a step sees it."""

from __future__ import annotations

from vitehub_chat.state.records import SummaryRecord
from vitehub_chat.state.sql.looks.conversations import SummaryLook
from vitehub_chat.state.sql.looks.locks import CountLook
from vitehub_chat.state.sql.looks.look import Miss
from vitehub_chat.state.sql.scratch.work import Removal, Work


class ScratchSummaries:
    """Manual summaries by conversation and session."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def get(self, conversation_key: int, session_key: int, /) -> SummaryRecord | None:
        """Return the last one saved."""
        part = self._work.conversation_of(conversation_key)
        if session_key not in part.summaries:
            raise Miss(SummaryLook(part.encoded, session_key))
        return part.summaries[session_key]

    def put(self, summary: SummaryRecord, /) -> None:
        """Save one in place of the last."""
        part = self._work.conversation_of(summary.conversation_key)
        before = part.summaries.get(summary.session_key)
        self._work.note(("summary", part.encoded, summary.session_key), before)
        part.summaries[summary.session_key] = summary

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        """Delete those of a conversation, or of one session, and count them."""
        work = self._work
        part = work.conversation_of(conversation_key)
        count = work.known.counts.get(("summaries", part.encoded, session_key))
        if count is None:
            raise Miss(CountLook("summaries", part.encoded, session_key))
        if count:
            work.removals.append(Removal("summaries", part.encoded, conversation_key, session_key))
        return count
