"""The tables of a window that is read again, on a connection that only reads."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import attrgetter
from typing import Final, cast

import attrs

from vitehub_chat.state.providers.sqlite.kept import KeptRows
from vitehub_chat.state.providers.sqlite.recall import Answer, Recall
from vitehub_chat.state.providers.sqlite.rows import SqliteRows
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.providers.sqlite.tables import SqliteTables
from vitehub_chat.state.records import ConversationRecord, RowRecord, SessionRecord
from vitehub_chat.state.sql.sessions import SqlSessions
from vitehub_chat.state.sql.tables import SqlConversations
from vitehub_chat.state.tables import RowQuery

_place_of: Final = attrgetter(
    "conversation_key", "session_key", "is_shown", "above", "below", "limit"
)


class RecallingTables(SqliteTables):
    """What a step sees that reads a window.

    What it asks for conversations, sessions and their newest rows is recalled; all else is asked.
    """

    def __init__(self, statements: Statements, kept: KeptRows) -> None:
        """Use a connection, and what is kept of it."""
        super().__init__(statements, kept)
        self._view = _View(kept.recall)
        self.conversations = _Conversations(statements, self._view)
        self.sessions = _Sessions(statements, self._view)
        self.rows = _Rows(statements, kept, self._view)

    def begin(self) -> None:
        """Note which version of the file the transaction sees that has begun."""
        self._view.begin(self._statements.find_data_version())


@attrs.define(eq=False)
class _View:
    """What one connection sees: numbers of different connections say nothing of each other."""

    recall: Recall
    version: Hashable = None

    def begin(self, number: int) -> None:
        self.version = (self, number)
        self.recall.begin(self.version)

    def find(self, question: Hashable, now: int = 0) -> Answer | None:
        return self.recall.find(question, now)

    def keep(self, question: Hashable, answer: Answer) -> None:
        self.recall.keep(self.version, question, answer)


class _Conversations(SqlConversations):
    """Conversations that are looked up once."""

    def __init__(self, statements: Statements, view: _View) -> None:
        super().__init__(statements)
        self._view = view

    def get(self, encoded: str, /) -> ConversationRecord | None:
        """Return a conversation by its encoded key."""
        answer = self._view.find(encoded)
        if answer is None:
            answer = Answer(super().get(encoded), size=len(encoded))
            self._view.keep(encoded, answer)
        return cast("ConversationRecord | None", answer.value)


class _Sessions(SqlSessions):
    """Sessions that are looked up once."""

    def __init__(self, statements: Statements, view: _View) -> None:
        super().__init__(statements)
        self._view = view

    def get(self, key: int, /) -> SessionRecord | None:
        """Return a session by its number."""
        answer = self._view.find(key)
        if answer is None:
            answer = Answer(super().get(key))
            self._view.keep(key, answer)
        return cast("SessionRecord | None", answer.value)

    def of_conversation(
        self, conversation_key: int, session_id: str | None, /
    ) -> SessionRecord | None:
        """Return the newest session of that id whose rows a conversation has."""
        question = (conversation_key, session_id)
        answer = self._view.find(question)
        if answer is None:
            answer = Answer(super().of_conversation(conversation_key, session_id))
            self._view.keep(question, answer)
        return cast("SessionRecord | None", answer.value)


class _Rows(SqliteRows):
    """Stored messages, of which the newest ones are read once."""

    def __init__(self, statements: Statements, kept: KeptRows, view: _View) -> None:
        super().__init__(statements, kept)
        self._view = view

    def select(self, query: RowQuery, /) -> Sequence[RowRecord]:
        """Return rows in the order asked for."""
        if query.order == "ascending":
            return super().select(query)
        question = _place_of(query)
        answer = self._view.find(question, query.now)
        if answer is None:
            answer = _answer_of(tuple(super().select(query)), query.now)
            self._view.keep(question, answer)
        return cast("Sequence[RowRecord]", answer.value)


def _answer_of(rows: Sequence[RowRecord], now: int) -> Answer:
    ends = [row.expires_at for row in rows if row.expires_at is not None]
    size = sum(len(row.body) + len(row.extra or "") for row in rows)
    return Answer(rows, size=size, since=now, until=min(ends, default=None))
