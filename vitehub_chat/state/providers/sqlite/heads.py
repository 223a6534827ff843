"""Heads: conversations and sessions as the writer knows them, so that none is asked for twice.

They hold for one version of the file, as tails do, and change with what the writer writes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import attrs

from vitehub_chat.state.records import ConversationRecord, SessionRecord

MOST_HEADS: Final = 4096
"""How many answers are kept at most; then all are dropped."""


class Heads:
    """Conversations, and sessions by what was asked for them; used by one thread at a time.

    Attributes:
        quiet: Conversations without a row of status `pending`, by number.
    """

    def __init__(self) -> None:
        self._version: Hashable = None
        self._conversations: dict[str, ConversationRecord] = {}
        self._encoded: dict[int, str] = {}
        self._sessions: dict[int, SessionRecord] = {}
        self._answers: dict[Hashable, int | None] = {}
        self.quiet: set[int] = set()

    def begin(self, version: Hashable) -> None:
        """Begin a transaction on a version of the file; another one drops all."""
        if version != self._version:
            self._version = version
            self.clear()

    def clear(self) -> None:
        """Drop all."""
        self._conversations.clear()
        self._encoded.clear()
        self.forget_sessions()
        self.quiet.clear()

    def find_conversation(self, encoded: str) -> ConversationRecord | None:
        """Return a conversation by its encoded key, or None if it has to be asked for."""
        return self._conversations.get(encoded)

    def put_conversation(self, conversation: ConversationRecord) -> None:
        """Keep a conversation as it is stored now."""
        self._make_room()
        self._conversations[conversation.encoded] = conversation
        self._encoded[conversation.key] = conversation.encoded

    def count_up(self, key: int, last_seq: int) -> None:
        """Note the last number that a conversation has given; no-op for one that is not kept."""
        encoded = self._encoded.get(key)
        if encoded is not None:
            known = self._conversations[encoded]
            self._conversations[encoded] = attrs.evolve(known, last_seq=last_seq)

    def forget_conversation(self, key: int) -> None:
        """Drop a conversation; no-op for one that is not kept."""
        encoded = self._encoded.pop(key, None)
        if encoded is not None:
            del self._conversations[encoded]

    def knows(self, question: Hashable) -> bool:
        """Tell whether it is known which session answers a question, if any."""
        return question in self._answers

    def find_session(self, question: Hashable) -> SessionRecord | None:
        """Return the session that answers a question that is known, or None if none does."""
        key = self._answers[question]
        return None if key is None else self._sessions[key]

    def put_session(self, question: Hashable, session: SessionRecord | None) -> None:
        """Keep which session answers a question."""
        self._make_room()
        self._answers[question] = None if session is None else session.key
        if session is not None:
            self._sessions[session.key] = session

    def change_session(self, session: SessionRecord) -> None:
        """Replace a session by its number; no-op for one that is not kept."""
        if session.key in self._sessions:
            self._sessions[session.key] = session

    def forget_sessions(self) -> None:
        """Drop all sessions, because other ones may be the answers from now on."""
        self._answers.clear()
        self._sessions.clear()

    def _make_room(self) -> None:
        if len(self._answers) + len(self._conversations) + len(self.quiet) >= MOST_HEADS:
            self.clear()
