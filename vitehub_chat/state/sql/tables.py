"""The tables of a store on one connection to an SQL database."""

from __future__ import annotations

from vitehub_chat.state.records import ConversationRecord, LockRecord, SummaryRecord
from vitehub_chat.state.sql.documents import SqlDocuments
from vitehub_chat.state.sql.entries import SqlEntries
from vitehub_chat.state.sql.mapping import Records, Statements
from vitehub_chat.state.sql.rows import SqlRows
from vitehub_chat.state.sql.sessions import SqlSessions

_locks = Records(LockRecord)
_conversations = Records(ConversationRecord)
_summaries = Records(SummaryRecord)


class SqlTables:
    """What a step sees; the connection says when a transaction begins and ends."""

    def __init__(self, statements: Statements, rows: SqlRows) -> None:
        self._sql = statements
        self._secret: bytes | None = None
        self.locks = SqlLocks(statements)
        self.entries = SqlEntries(statements)
        self.conversations = SqlConversations(statements)
        self.sessions = SqlSessions(statements)
        self.rows = rows
        self.summaries = SqlSummaries(statements)
        self.documents = SqlDocuments(statements)

    @property
    def secret(self) -> bytes:
        """Random bytes made once per store, the key of its cursors."""
        if self._secret is None:
            self._secret = bytes(self._sql.fetch_existing("meta.secret", {})[0])
        return self._secret


class SqlLocks:
    """Locks by key."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    def get(self, lock_key: str, /) -> LockRecord | None:
        """Return the lock, also one whose lease is over."""
        return _locks.one(self._sql.fetch("locks.get", {"lock_key": lock_key}))

    def put(self, lock: LockRecord, /) -> None:
        """Insert or replace a lock."""
        self._sql.change("locks.put", _locks.values_of(lock))

    def delete(self, lock_key: str, /) -> None:
        """Delete a lock; no-op if there is none."""
        self._sql.change("locks.delete", {"lock_key": lock_key})

    def next_token(self) -> int:
        """Return a number higher than every one returned before, of any lock."""
        token: int = self._sql.fetch_existing("locks.next_token", {})[0]
        return token


class SqlConversations:
    """Conversations and their counters."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    def get(self, encoded: str, /) -> ConversationRecord | None:
        """Return a conversation by its encoded key."""
        return _conversations.one(self._sql.fetch("conversations.get", {"encoded": encoded}))

    def ensure(self, encoded: str, /) -> ConversationRecord:
        """Return a conversation, created with its first use."""
        found = self.get(encoded)
        if found is not None:
            return found
        (key,) = self._sql.fetch_existing("conversations.insert", {"encoded": encoded})
        return ConversationRecord(key=key, encoded=encoded, last_seq=0, generation=0)

    def allocate(self, key: int, count: int, /) -> int:
        """Take `count` numbers and return the first; numbers are never used again."""
        values = {"key": key, "count": count}
        last: int = self._sql.fetch_existing("conversations.allocate", values)[0]
        return last - count + 1

    def next_generation(self, key: int, /) -> int:
        """Raise the generation and return it."""
        values = {"key": key}
        generation: int = self._sql.fetch_existing("conversations.next_generation", values)[0]
        return generation


class SqlSummaries:
    """Manual summaries by conversation and session."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    def get(self, conversation_key: int, session_key: int, /) -> SummaryRecord | None:
        """Return the last one saved."""
        values = {"conversation_key": conversation_key, "session_key": session_key}
        return _summaries.one(self._sql.fetch("summaries.get", values))

    def put(self, summary: SummaryRecord, /) -> None:
        """Save one in place of the last."""
        self._sql.change("summaries.put", _summaries.values_of(summary))

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        """Delete those of a conversation, or of one session, and count them."""
        values = {"conversation_key": conversation_key, "session_key": session_key}
        whole = session_key is None
        return self._sql.delete(
            "summaries.delete_conversation" if whole else "summaries.delete_session", values
        )
