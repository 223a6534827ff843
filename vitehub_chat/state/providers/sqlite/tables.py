"""The tables of a store on one SQLite connection."""

from __future__ import annotations

from typing import Final

from vitehub_chat.state.providers.sqlite.entries import SqliteEntries
from vitehub_chat.state.providers.sqlite.rows import SqliteRows
from vitehub_chat.state.providers.sqlite.sessions import SqliteSessions
from vitehub_chat.state.providers.sqlite.statements import Records, Statements
from vitehub_chat.state.records import ConversationRecord, LockRecord, SummaryRecord

_TABLES: Final = (
    "locks",
    "entries",
    "conversations",
    "sessions",
    "rows",
    "summaries",
    "meta",
    "schema",
)

_locks = Records(LockRecord)
_conversations = Records(ConversationRecord)
_summaries = Records(SummaryRecord)


class SqliteTables:
    """What a step sees; the connection says when a transaction begins and ends."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements
        self._secret: bytes | None = None
        self.locks = SqliteLocks(statements)
        self.entries = SqliteEntries(statements)
        self.conversations = SqliteConversations(statements)
        self.sessions = SqliteSessions(statements)
        self.rows = SqliteRows(statements)
        self.summaries = SqliteSummaries(statements)

    @property
    def secret(self) -> bytes:
        """Random bytes made once per store, the key of its cursors."""
        if self._secret is None:
            self._secret = bytes(self._sql.fetch_existing("meta.secret", {})[0])
        return self._secret

    def drop(self) -> None:
        """Drop every table; nothing works afterwards."""
        for name in _TABLES:
            self._sql.execute(f"drop.{name}", {})
        self._sql.has_deleted = True


class SqliteLocks:
    """Locks by key."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    def get(self, lock_key: str, /) -> LockRecord | None:
        """Return the lock, also one whose lease is over."""
        return _locks.one(self._sql.fetch("locks.get", {"lock_key": lock_key}))

    def put(self, lock: LockRecord, /) -> None:
        """Insert or replace a lock."""
        self._sql.execute("locks.put", _locks.values_of(lock))

    def delete(self, lock_key: str, /) -> None:
        """Delete a lock; no-op if there is none."""
        self._sql.execute("locks.delete", {"lock_key": lock_key})

    def next_token(self) -> int:
        """Return a number higher than every one returned before, of any lock."""
        token: int = self._sql.fetch_existing("locks.next_token", {})[0]
        return token


class SqliteConversations:
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
        cursor = self._sql.execute("conversations.insert", {"encoded": encoded})
        key = cursor.lastrowid or 0
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


class SqliteSummaries:
    """Manual summaries by conversation and session."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    def get(self, conversation_key: int, session_key: int, /) -> SummaryRecord | None:
        """Return the last one saved."""
        values = {"conversation_key": conversation_key, "session_key": session_key}
        return _summaries.one(self._sql.fetch("summaries.get", values))

    def put(self, summary: SummaryRecord, /) -> None:
        """Save one in place of the last."""
        self._sql.execute("summaries.put", _summaries.values_of(summary))

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        """Delete those of a conversation, or of one session, and count them."""
        values = {"conversation_key": conversation_key, "session_key": session_key}
        whole = session_key is None
        return self._sql.delete(
            "summaries.delete_conversation" if whole else "summaries.delete_session", values
        )
