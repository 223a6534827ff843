"""Tables: what a provider implements; the steps say what happens in them.

A step is a plain function over one `Transaction`. A provider runs it so that it sees one
consistent state and all of its writes happen or none; it may run it again from the start. So a
step has no other effects, and takes times and ids as arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import attrs

from vitehub_chat.state.records import (
    AuthoredRow,
    ConversationRecord,
    DocumentKind,
    DocumentRecord,
    EntryRecord,
    LockRecord,
    RowRecord,
    SessionRecord,
    SummaryRecord,
)

Lanes = tuple[str, str]
"""The two lanes that may lead to a session: by its own id, and by its base."""


class LockTable(Protocol):
    """Locks by key."""

    def get(self, lock_key: str, /) -> LockRecord | None:
        """Return the lock, also one whose lease is over."""

    def put(self, lock: LockRecord, /) -> None:
        """Insert or replace a lock."""

    def delete(self, lock_key: str, /) -> None:
        """Delete a lock; no-op if there is none."""

    def next_token(self) -> int:
        """Return a number higher than every one returned before, of any lock."""


class EntryTable(Protocol):
    """Accepted messages, by arrival."""

    def get(self, ticket_id: str, /) -> EntryRecord | None:
        """Return one entry."""

    def by_claim(self, claim_key: str, /) -> EntryRecord | None:
        """Return the entry that holds a claim; at most one does."""

    def insert(self, entry: EntryRecord, /) -> EntryRecord:
        """Insert an entry behind all others and return it with its position."""

    def update(self, entry: EntryRecord, /) -> None:
        """Replace an entry by its ticket."""

    def delete(self, ticket_id: str, /) -> None:
        """Delete an entry; no-op if there is none."""

    def first_waiting(self, lock_key: str, /) -> EntryRecord | None:
        """Return the waiting entry that came first."""

    def last_waiting(self, lock_key: str, /) -> EntryRecord | None:
        """Return the waiting entry that came last."""

    def stalled(self, now: int, above: int, limit: int, /) -> Sequence[EntryRecord]:
        """Return open entries whose lock nobody holds any more or yet, by arrival.

        Those with a position above `above`, at most `limit`. A hint, on which no write may rely:
        what is done about an entry is decided in a step that looks at its lock.
        """

    def waiting_in_lane(self, lock_key: str, lane: str, /) -> Sequence[EntryRecord]:
        """Return the waiting entries of one lane, by arrival."""

    def count_waiting(self, lock_key: str, now: int, /) -> int:
        """Count the waiting entries that are not expired."""

    def of_run(self, run_ticket_id: str, /) -> Sequence[EntryRecord]:
        """Return the running and recorded entries of a run, by arrival."""

    def open_in(self, conversation: str, /) -> Sequence[EntryRecord]:
        """Return the entries of a conversation that have not ended, by arrival."""

    def open_of_session(self, session_key: int, /) -> Sequence[EntryRecord]:
        """Return the entries recorded in a session that have not ended, by arrival.

        They may have arrived in other conversations than the one that has its rows.
        """

    def with_payload(self, above: int, limit: int, /) -> Sequence[EntryRecord]:
        """Return entries that still have their payload, by arrival.

        Those with a position above `above`, at most `limit`. A hint like `stalled`.
        """

    def purge(self, now: int, limit: int, /) -> int:
        """Delete at most `limit` ended or lost entries whose time to be kept is over."""

    def delete_conversation(self, conversation: str, conversation_key: int, /) -> int:
        """Delete the entries of a conversation with their claims, and count them.

        Those recorded in one of the sessions whose rows it has, wherever they arrived, and those
        that arrived in it and were not recorded. `conversation_key` is 0 if it has no rows yet.
        """

    def delete_session(self, conversation: str, session_key: int, lanes: Lanes, /) -> int:
        """Delete the entries of one session with their claims, and count them.

        Those recorded in it, wherever they arrived, and those of the conversation that were not
        recorded, are in one of the lanes and begin no session of their own.
        """

    def release_claims(self, session_key: int, run_ticket_ids: Sequence[str], /) -> None:
        """Let ended entries of runs that were recorded in a session forget their claims."""


class ConversationTable(Protocol):
    """Conversations and their counters."""

    def get(self, encoded: str, /) -> ConversationRecord | None:
        """Return a conversation by its encoded key."""

    def ensure(self, encoded: str, /) -> ConversationRecord:
        """Return a conversation, created with its first use."""

    def allocate(self, key: int, count: int, /) -> int:
        """Take `count` numbers and return the first; numbers are never used again."""

    def next_generation(self, key: int, /) -> int:
        """Raise the generation and return it."""


class SessionTable(Protocol):
    """Sessions."""

    def get(self, key: int, /) -> SessionRecord | None:
        """Return a session by its number."""

    def by_id(self, scope: str, session_id: str, /) -> SessionRecord | None:
        """Return the session of that id in a scope."""

    def latest(self, scope: str, base: str | None, /) -> SessionRecord | None:
        """Return the newest session of a base in a scope."""

    def of_conversation(
        self, conversation_key: int, session_id: str | None, /
    ) -> SessionRecord | None:
        """Return the newest session of that id whose rows a conversation has."""

    def insert(self, session: SessionRecord, /) -> SessionRecord:
        """Insert a session and return it with its number."""

    def update(self, session: SessionRecord, /) -> None:
        """Replace a session by its number."""

    def list(self, query: SessionQuery, /) -> Sequence[SessionRecord]:
        """Return sessions, newest activity first."""

    def all_of(self, conversation_key: int, /) -> Sequence[SessionRecord]:
        """Return every session whose rows a conversation has."""

    def delete(self, key: int, /) -> None:
        """Delete a session."""


class RowTable(Protocol):
    """Stored messages. A row whose `expires_at` is at or before the time asked for is not there."""

    def by_message(self, conversation_key: int, message_id: str, now: int, /) -> RowRecord | None:
        """Return the row of a message id."""

    def insert(self, row: RowRecord, /) -> None:
        """Insert a row under its number, in place of an expired one of the same message."""

    def replace(self, row: RowRecord, /) -> None:
        """Replace the row of that number."""

    def select(self, query: RowQuery, /) -> Sequence[RowRecord]:
        """Return rows in the order asked for; touches about as many as it returns."""

    def exists(self, query: RowQuery, /) -> bool:
        """Tell whether any row matches."""

    def pending(self, conversation_key: int, /) -> Sequence[RowRecord]:
        """Return the rows of status `pending`."""

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        """Delete the rows of a conversation, or of one of its sessions, and count them."""

    def remove(self, rows: Sequence[RowRecord], /) -> None:
        """Delete these rows; each is one that was read in this step."""

    def by_author(self, author: str, after: int, limit: int, /) -> Sequence[AuthoredRow]:
        """Return rows of an author in all conversations, by `AuthoredRow.id`.

        Those with an id above `after`, at most `limit`, expired ones too. A hint like
        `EntryTable.stalled`.
        """


class SummaryTable(Protocol):
    """Manual summaries, one per session."""

    def get(self, conversation_key: int, session_key: int, /) -> SummaryRecord | None:
        """Return the last one saved."""

    def put(self, summary: SummaryRecord, /) -> None:
        """Save one in place of the last."""

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        """Delete those of a conversation, or of one session, and count them."""


class DocumentTable(Protocol):
    """Documents. One whose `expires_at` is at or before the time asked for is not there."""

    def get(self, home: str, kind: DocumentKind, name: str, now: int, /) -> DocumentRecord | None:
        """Return the document of a name."""

    def newest(
        self, home: str, kind: DocumentKind, session_key: int, now: int, /
    ) -> DocumentRecord | None:
        """Return the document of a session with the highest number, then made last."""

    def numbered(self, query: DocumentQuery, /) -> Sequence[DocumentRecord]:
        """Return documents of one kind by their numbers, in the order asked for."""

    def put_aside(self, after: tuple[str, str, str], limit: int, /) -> Sequence[DocumentRecord]:
        """Return rows of all conversations that were put aside, by home, kind and name.

        Those after a place of that order, at most `limit`, expired ones too. A hint like
        `EntryTable.stalled`.
        """

    def put(self, document: DocumentRecord, /) -> None:
        """Insert a document, or replace the one of its home, kind and name."""

    def delete(self, home: str, kind: DocumentKind, name: str, /) -> None:
        """Delete a document; no-op if there is none."""

    def delete_of(self, home: str, session_key: int | None, now: int, /) -> Mapping[str, int]:
        """Delete all documents of a home, or those of one session, and count them by kind.

        Expired ones go, too, and are not counted.
        """


class Transaction(Protocol):
    """One consistent view of all tables, whose writes happen together or not at all."""

    @property
    def locks(self) -> LockTable:
        """Locks."""

    @property
    def entries(self) -> EntryTable:
        """Accepted messages."""

    @property
    def conversations(self) -> ConversationTable:
        """Conversations."""

    @property
    def sessions(self) -> SessionTable:
        """Sessions."""

    @property
    def rows(self) -> RowTable:
        """Stored messages."""

    @property
    def summaries(self) -> SummaryTable:
        """Manual summaries."""

    @property
    def documents(self) -> DocumentTable:
        """Documents."""

    @property
    def secret(self) -> bytes:
        """Random bytes made once per store, the key of its cursors."""


@attrs.frozen(kw_only=True)
class RowQuery:
    """Which rows; all conditions together.

    Attributes:
        session_key: Only this session, None is the whole conversation.
        is_shown: Only rows that are shown, or that are not; None is both.
        above: Only numbers above this one.
        below: Only numbers below this one.
        order: By number, `ascending` or `descending`.
        limit: At most so many.
        now: Rows that have expired by then are left out.
    """

    conversation_key: int
    session_key: int | None = None
    is_shown: bool | None = None
    above: int | None = None
    below: int | None = None
    order: Literal["ascending", "descending"] = "ascending"
    limit: int = 1
    now: int


def _lower_bound(number: int | None) -> int:
    return -1 if number is None else number


def _upper_bound(number: int | None) -> int:
    return 1 << 32 if number is None else number


@attrs.frozen(kw_only=True)
class DocumentQuery:
    """Which documents of one kind in one home; all conditions together.

    Attributes:
        session_key: Only this session, None is all of the home.
        above: Only numbers above this one; None is no bound.
        below: Only numbers below this one; None is no bound.
        order: By number, `ascending` or `descending`.
        limit: At most so many.
        now: Documents that have expired by then are left out.
    """

    home: str
    kind: DocumentKind
    session_key: int | None = None
    above: int = attrs.field(default=None, converter=_lower_bound)
    below: int = attrs.field(default=None, converter=_upper_bound)
    order: Literal["ascending", "descending"] = "ascending"
    limit: int
    now: int


@attrs.frozen(kw_only=True)
class SessionQuery:
    """Which sessions; all conditions together.

    Attributes:
        tenant: Exactly this tenant.
        agent: Only of this agent, None is any.
        user_key: Only of this owner, None is any.
        conversation_key: Only of this conversation, None is any.
        after: Only those behind this (`last_message_at`, `key`), or None.
        updated_since: Only those with activity at or after this time, or None.
        limit: At most so many.
    """

    tenant: str | None
    agent: str | None = None
    user_key: str | None = None
    conversation_key: int | None = None
    after: tuple[int, int] | None = None
    updated_since: int | None = None
    limit: int
