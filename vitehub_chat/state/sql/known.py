"""Known: what of a store is known, in parts that change together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import attrs

from vitehub_chat.state.records import (
    AuthoredRow,
    ConversationRecord,
    DocumentRecord,
    EntryRecord,
    LockRecord,
    RowRecord,
    SessionRecord,
    SummaryRecord,
)
from vitehub_chat.state.sql.coverage import Coverage
from vitehub_chat.state.tables import DocumentQuery, SessionQuery

NewestOf = tuple[Literal["id", "base"], str, str | None]
"""What a session is the newest of: its id or its base, in a scope."""


@attrs.define(kw_only=True)
class LockPart:
    """A lock with its line; what changes it raises the revision of its scope.

    Attributes:
        entries: Entries that want this lock, by ticket.
        has_line: Whether all that have not ended are among them.
    """

    lock_key: str
    revision: int
    lock: LockRecord | None
    entries: dict[str, EntryRecord] = attrs.field(factory=dict)
    has_line: bool = False

    @property
    def scope(self) -> str:
        """The name of its scope."""
        return f"lock:{self.lock_key}"

    @property
    def is_idle(self) -> bool:
        """Whether nobody holds this lock or wants it, as far as that is known."""
        return self.has_line and self.lock is None and not any(map(is_open, self.entries.values()))

    def copy(self) -> LockPart:
        """Return another one that may be changed."""
        return attrs.evolve(self, entries=dict(self.entries))


@attrs.define(kw_only=True)
class ConversationPart:
    """A conversation with what belongs to it; what changes any of it raises its scope.

    Attributes:
        is_found: Whether it is known if there is a conversation, and which rows are pending.
        record: The conversation, or None if there is none or it was not looked up.
        sessions: Sessions whose rows it has, by number.
        by_id: The number of the newest session of an id, or None if there is none.
        has_sessions: Whether all sessions are known.
        rows: Rows by number; `put_row` and `drop_row` change them.
        seqs: The numbers of the same rows by message id.
        free_ids: Message ids that no row has.
        coverage: Which rows are all known.
        summaries: Manual summaries by session, or None if there is none.
        documents: Documents by kind and name, or None if there is none.
        newest_documents: The newest documents by kind and session, or None if there is none.
    """

    encoded: str
    revision: int
    is_found: bool = False
    record: ConversationRecord | None = None
    sessions: dict[int, SessionRecord] = attrs.field(factory=dict)
    by_id: dict[str | None, int | None] = attrs.field(factory=dict)
    has_sessions: bool = False
    rows: dict[int, RowRecord] = attrs.field(factory=dict)
    seqs: dict[str, int] = attrs.field(factory=dict)
    free_ids: set[str] = attrs.field(factory=set)
    coverage: Coverage = attrs.field(factory=Coverage)
    summaries: dict[int, SummaryRecord | None] = attrs.field(factory=dict)
    documents: dict[tuple[str, str], DocumentRecord | None] = attrs.field(factory=dict)
    newest_documents: dict[tuple[str, int], DocumentRecord | None] = attrs.field(factory=dict)

    @property
    def scope(self) -> str:
        """The name of its scope."""
        return f"conversation:{self.encoded}"

    def put_row(self, row: RowRecord) -> None:
        """Note a row under its number."""
        self.rows[row.seq] = row
        self.seqs[row.message_id] = row.seq
        self.free_ids.discard(row.message_id)

    def drop_row(self, row: RowRecord) -> None:
        """Forget a row; whether there is one of its message id is not known any more."""
        del self.rows[row.seq]
        self.seqs.pop(row.message_id, None)

    def row_of(self, message_id: str) -> RowRecord | None:
        """Return the row of a message id, if it is known."""
        seq = self.seqs.get(message_id)
        return None if seq is None else self.rows[seq]

    def copy(self) -> ConversationPart:
        """Return another one that may be changed."""
        return attrs.evolve(
            self,
            sessions=dict(self.sessions),
            by_id=dict(self.by_id),
            rows=dict(self.rows),
            seqs=dict(self.seqs),
            free_ids=set(self.free_ids),
            coverage=self.coverage.copy(),
            summaries=dict(self.summaries),
            documents=dict(self.documents),
            newest_documents=dict(self.newest_documents),
        )


@attrs.define
class ValuePart:
    """A value, which has a scope of its own, so that those who change others need not wait.

    Attributes:
        revision: The revision of its scope.
        record: The document, or None if there is none.
    """

    revision: int
    record: DocumentRecord | None


@attrs.define(kw_only=True)
class Known:
    """What a step can be told without asking.

    Attributes:
        is_fresh: Whether all of it was read at once, and just now.
        locks: Locks with their lines.
        conversations: Conversations by their encoded keys.
        lock_keys: The lock that an entry wants by its ticket, or None if there is no such entry.
        claims: The ticket of the entry that holds a claim, or None if none does.
        newest: The numbers of sessions, or None if there is none.
        homes: The conversations that have the rows of sessions, or None if there is none.
        open_entries: The tickets of the entries of a conversation that have not ended.
        stalled: The open entries whose lock nobody holds, by time, position and limit.
        payloads: The entries that still have their payload, by position and limit.
        authored: Where messages of an author are, by author, number and limit.
        numbered: Documents by number.
        put_aside: Rows that were put aside, by place and limit.
        values: Values by what names their scopes.
        counts: How many there are of a kind in a conversation, or in a session of it.
        document_counts: How many documents there are of each kind.
        lists: Lists of sessions.
        revisions: Revisions of scopes that were asked for alone.
        written: Which writes have happened.
        reserved: The last of the numbers that were reserved for `conversation` or `session`.
    """

    is_fresh: bool = True
    locks: dict[str, LockPart] = attrs.field(factory=dict)
    conversations: dict[str, ConversationPart] = attrs.field(factory=dict)
    lock_keys: dict[str, str | None] = attrs.field(factory=dict)
    claims: dict[str, str | None] = attrs.field(factory=dict)
    newest: dict[NewestOf, int | None] = attrs.field(factory=dict)
    homes: dict[int, str | None] = attrs.field(factory=dict)
    open_entries: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    stalled: dict[tuple[int, int, int], tuple[EntryRecord, ...]] = attrs.field(factory=dict)
    payloads: dict[tuple[int, int], tuple[EntryRecord, ...]] = attrs.field(factory=dict)
    authored: dict[tuple[str, int, int], tuple[AuthoredRow, ...]] = attrs.field(factory=dict)
    numbered: dict[DocumentQuery, tuple[DocumentRecord, ...]] = attrs.field(factory=dict)
    put_aside: dict[tuple[tuple[str, str, str], int], tuple[DocumentRecord, ...]] = attrs.field(
        factory=dict
    )
    values: dict[str, ValuePart] = attrs.field(factory=dict)
    counts: dict[tuple[str, str, int | None], int] = attrs.field(factory=dict)
    document_counts: dict[tuple[str, int | None], dict[str, int]] = attrs.field(factory=dict)
    lists: dict[tuple[SessionQuery, str | None], tuple[SessionRecord, ...]] = attrs.field(
        factory=dict
    )
    revisions: dict[str, int] = attrs.field(factory=dict)
    written: set[str] = attrs.field(factory=set)
    reserved: dict[str, int] = attrs.field(factory=dict)

    def add_lock(self, lock_key: str, revision: int, lock: LockRecord | None) -> LockPart:
        """Note a lock; what is known of its line stays."""
        part = self.locks.get(lock_key)
        if part is None:
            part = LockPart(lock_key=lock_key, revision=revision, lock=lock)
            self.locks[lock_key] = part
        return part

    def add_entry(self, entry: EntryRecord) -> None:
        """Note an entry of a lock that is known."""
        self.lock_keys[entry.ticket_id] = entry.lock_key
        part = self.locks.get(entry.lock_key)
        if part is not None:
            part.entries[entry.ticket_id] = entry
        if entry.claim_key is not None:
            self.claims[entry.claim_key] = entry.ticket_id

    def add_conversation(self, encoded: str, revision: int) -> ConversationPart:
        """Note the revision of a conversation; what is known of it stays."""
        part = self.conversations.get(encoded)
        if part is None:
            part = ConversationPart(encoded=encoded, revision=revision)
            self.conversations[encoded] = part
        return part

    def add_session(self, session: SessionRecord, revision: int) -> None:
        """Note a session in the conversation that has its rows."""
        self.homes[session.key] = session.conversation
        self.add_conversation(session.conversation, revision).sessions[session.key] = session


def parts_of(known: Known) -> Iterator[LockPart | ConversationPart]:
    """Yield everything that has a scope."""
    yield from known.locks.values()
    yield from known.conversations.values()


def is_open(entry: EntryRecord) -> bool:
    """Tell whether an entry has not ended and was not lost."""
    return entry.state not in {"ended", "lost"}
