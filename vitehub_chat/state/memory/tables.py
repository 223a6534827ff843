"""The six tables in memory; what each method does is said by the protocols of `state/tables.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count, islice

import attrs

from vitehub_chat.state.memory.indexed import Counter, Index, Indexed, Journal
from vitehub_chat.state.records import (
    ConversationRecord,
    EntryRecord,
    LockRecord,
    RowRecord,
    SessionRecord,
    SummaryRecord,
)
from vitehub_chat.state.tables import RowQuery, SessionQuery

_EVERYTHING = ""
"""The group of an index that has only one."""


class MemoryLocks:
    """Locks by key."""

    def __init__(self, journal: Journal) -> None:
        self._locks: Indexed[str, LockRecord] = Indexed(journal)
        self._tokens = count(1)

    def __len__(self) -> int:
        return len(self._locks)

    def get(self, lock_key: str, /) -> LockRecord | None:
        """Return the lock, also one whose lease is over."""
        return self._locks.get(lock_key)

    def put(self, lock: LockRecord, /) -> None:
        """Insert or replace a lock."""
        self._locks.put(lock.lock_key, lock)

    def delete(self, lock_key: str, /) -> None:
        """Delete a lock; no-op if there is none."""
        self._locks.remove(lock_key)

    def next_token(self) -> int:
        """Return a new number; one that a failed step took is not given out again."""
        return next(self._tokens)


class MemoryEntries:
    """Accepted messages by ticket, and in lines of arrival."""

    def __init__(self, journal: Journal) -> None:
        self._positions = Counter(journal)
        self._claims = _lines(lambda e: [] if e.claim_key is None else [e.claim_key])
        self._waiting = _lines(lambda e: [e.lock_key, (e.lock_key, e.lane)] if _waits(e) else [])
        self._expiring: Index[str, EntryRecord] = Index(
            lambda e: [e.lock_key] if _waits(e) and e.expires_at is not None else [],
            lambda e: e.expires_at,
        )
        self._runs = _lines(lambda e: [e.run_ticket_id] if _runs(e) else [])
        self._open = _lines(lambda e: [] if _is_over(e) else [e.conversation])
        self._over: Index[str, EntryRecord] = Index(
            lambda e: [_EVERYTHING] if _is_over(e) else [], lambda e: e.keep_until
        )
        self._conversations = _lines(lambda e: [e.conversation])
        self._entries: Indexed[str, EntryRecord] = Indexed(
            journal,
            self._claims,
            self._waiting,
            self._expiring,
            self._runs,
            self._open,
            self._over,
            self._conversations,
        )

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, ticket_id: str, /) -> EntryRecord | None:
        """Return one entry."""
        return self._entries.get(ticket_id)

    def by_claim(self, claim_key: str, /) -> EntryRecord | None:
        """Return the entry that holds a claim."""
        return self._entries.get(self._claims.first(claim_key))

    def insert(self, entry: EntryRecord, /) -> EntryRecord:
        """Insert an entry behind all others and return it with its position."""
        placed = attrs.evolve(entry, position=self._positions.next())
        self._entries.put(placed.ticket_id, placed)
        return placed

    def update(self, entry: EntryRecord, /) -> None:
        """Replace an entry by its ticket."""
        self._entries.replace(entry.ticket_id, entry)

    def delete(self, ticket_id: str, /) -> None:
        """Delete an entry; no-op if there is none."""
        self._entries.remove(ticket_id)

    def first_waiting(self, lock_key: str, /) -> EntryRecord | None:
        """Return the waiting entry that came first."""
        return self._entries.get(self._waiting.first(lock_key))

    def waiting_in_lane(self, lock_key: str, lane: str, /) -> Sequence[EntryRecord]:
        """Return the waiting entries of one lane, by arrival."""
        return self._entries.all(self._waiting.keys((lock_key, lane)))

    def count_waiting(self, lock_key: str, now: int, /) -> int:
        """Count the waiting entries that are not expired."""
        return self._waiting.count(lock_key) - self._expiring.count_through(lock_key, now)

    def of_run(self, run_ticket_id: str, /) -> Sequence[EntryRecord]:
        """Return the running and recorded entries of a run, by arrival."""
        return self._entries.all(self._runs.keys(run_ticket_id))

    def open_in(self, conversation: str, /) -> Sequence[EntryRecord]:
        """Return the entries of a conversation that have not ended, by arrival."""
        return self._entries.all(self._open.keys(conversation))

    def purge(self, now: int, limit: int, /) -> int:
        """Delete at most `limit` entries that need not be kept any more, the longest over first."""
        return self._delete_all(islice(self._over.between(_EVERYTHING, below=now + 1), limit))

    def keep_newest(self, limit: int, /) -> int:
        """Delete ended and lost entries beyond a number of them, first what is kept shortest."""
        surplus = max(0, self._over.count(_EVERYTHING) - limit)
        return self._delete_all(islice(self._over.between(_EVERYTHING), surplus))

    def delete_conversation(self, conversation: str, /) -> int:
        """Delete every entry of a conversation, with its claim."""
        return self._delete_all(self._conversations.keys(conversation))

    def release_claims(self, claim_keys: Sequence[str], /) -> None:
        """Let ended entries forget these claims."""
        for entry in map(self.by_claim, claim_keys):
            if entry is not None and entry.state == "ended":
                self.update(attrs.evolve(entry, claim_key=None))

    def _delete_all(self, ticket_ids: Iterable[str]) -> int:
        doomed = list(ticket_ids)
        for ticket_id in doomed:
            self.delete(ticket_id)
        return len(doomed)


class MemoryConversations:
    """Conversations and their counters."""

    def __init__(self, journal: Journal) -> None:
        self._keys = Counter(journal)
        self._by_text: Index[int, ConversationRecord] = Index(
            lambda c: [c.encoded], lambda c: c.key
        )
        self._conversations: Indexed[int, ConversationRecord] = Indexed(journal, self._by_text)

    def get(self, encoded: str, /) -> ConversationRecord | None:
        """Return a conversation by its encoded key."""
        return self._conversations.get(self._by_text.first(encoded))

    def ensure(self, encoded: str, /) -> ConversationRecord:
        """Return a conversation, created with its first use."""
        found = self.get(encoded)
        if found is None:
            key = self._keys.next()
            found = ConversationRecord(key=key, encoded=encoded, last_seq=0, generation=1)
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


class MemorySessions:
    """Sessions by number."""

    def __init__(self, journal: Journal) -> None:
        self._keys = Counter(journal)
        self._ids = _newest(lambda s: [(s.scope, s.session_id)])
        self._bases = _newest(lambda s: [(s.scope, s.base)])
        self._conversations = _newest(lambda s: [s.conversation_key])
        self._ids_of_conversations = _newest(lambda s: [(s.conversation_key, s.session_id)])
        self._activity: Index[int, SessionRecord] = Index(_lists, _last_activity)
        self._sessions: Indexed[int, SessionRecord] = Indexed(
            journal,
            self._ids,
            self._bases,
            self._conversations,
            self._ids_of_conversations,
            self._activity,
        )

    def get(self, key: int, /) -> SessionRecord | None:
        """Return a session by its number."""
        return self._sessions.get(key)

    def by_id(self, scope: str, session_id: str, /) -> SessionRecord | None:
        """Return the session of that id in a scope."""
        return self._sessions.get(self._ids.last((scope, session_id)))

    def latest(self, scope: str, base: str | None, /) -> SessionRecord | None:
        """Return the newest session of a base in a scope."""
        return self._sessions.get(self._bases.last((scope, base)))

    def of_conversation(
        self, conversation_key: int, session_id: str | None, /
    ) -> SessionRecord | None:
        """Return the newest session of that id whose rows a conversation has."""
        group = (conversation_key, session_id)
        return self._sessions.get(self._ids_of_conversations.last(group))

    def insert(self, session: SessionRecord, /) -> SessionRecord:
        """Insert a session and return it with its number."""
        numbered = attrs.evolve(session, key=self._keys.next())
        self._sessions.put(numbered.key, numbered)
        return numbered

    def update(self, session: SessionRecord, /) -> None:
        """Replace a session by its number."""
        self._sessions.replace(session.key, session)

    def list(self, query: SessionQuery, /) -> Sequence[SessionRecord]:
        """Return sessions, newest activity first, of equal activity the newest one first."""
        keys = self._activity.between(
            (query.tenant, query.agent, query.user_key, query.conversation_key),
            above=None if query.updated_since is None else (query.updated_since, 0),
            below=query.after,
            descending=True,
        )
        return self._sessions.all(islice(keys, query.limit))

    def all_of(self, conversation_key: int, /) -> Sequence[SessionRecord]:
        """Return every session whose rows a conversation has."""
        return self._sessions.all(self._conversations.keys(conversation_key))

    def delete(self, key: int, /) -> None:
        """Delete a session."""
        self._sessions.remove(key)


class MemoryRows:
    """Stored messages by conversation and number."""

    def __init__(self, journal: Journal) -> None:
        self._messages: Index[tuple[int, int], RowRecord] = Index(
            lambda r: [(r.conversation_key, r.message_id)], _seq
        )
        self._selections: Index[tuple[int, int], RowRecord] = Index(_selections, _seq)
        self._pending: Index[tuple[int, int], RowRecord] = Index(
            lambda r: [r.conversation_key] if r.status == "pending" else [], _seq
        )
        self._expiring: Index[tuple[int, int], RowRecord] = Index(
            lambda r: [] if r.expires_at is None else [_EVERYTHING], lambda r: r.expires_at
        )
        self._rows: Indexed[tuple[int, int], RowRecord] = Indexed(
            journal, self._messages, self._selections, self._pending, self._expiring
        )

    def __len__(self) -> int:
        return len(self._rows)

    def by_message(self, conversation_key: int, message_id: str, now: int, /) -> RowRecord | None:
        """Return the row of a message id."""
        row = self._rows.get(self._messages.last((conversation_key, message_id)))
        return None if row is None or _is_expired(row, now) else row

    def insert(self, row: RowRecord, /) -> None:
        """Insert a row under its number."""
        self._rows.put((row.conversation_key, row.seq), row)

    def replace(self, row: RowRecord, /) -> None:
        """Replace the row of that number."""
        self._rows.replace((row.conversation_key, row.seq), row)

    def select(self, query: RowQuery, /) -> Sequence[RowRecord]:
        """Return rows in the order asked for; touches those it returns and expired ones."""
        keys = self._selections.between(
            (query.conversation_key, query.session_key, query.is_shown),
            above=query.above,
            below=query.below,
            descending=query.order == "descending",
        )
        found = map(self._rows.get, keys)
        live = (row for row in found if row is not None and not _is_expired(row, query.now))
        return list(islice(live, query.limit))

    def exists(self, query: RowQuery, /) -> bool:
        """Tell whether any row matches."""
        return bool(self.select(attrs.evolve(query, limit=1)))

    def pending(self, conversation_key: int, /) -> Sequence[RowRecord]:
        """Return the rows of status `pending`, by number."""
        return self._rows.all(self._pending.keys(conversation_key))

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        """Delete the rows of a conversation, or of one of its sessions, and count them."""
        # The last one first: cutting off the end of a sorted list moves nothing.
        return self._delete_all(
            reversed(self._selections.keys((conversation_key, session_key, None)))
        )

    def purge(self, now: int, limit: int, /) -> int:
        """Delete at most `limit` expired rows."""
        expired = self._expiring.between(_EVERYTHING, below=now + 1)
        return self._delete_all(list(islice(expired, limit)))

    def keep_forever(self) -> None:
        """Let no row expire, those already past their time included."""
        for row in self._rows.all(self._expiring.keys(_EVERYTHING)):
            self.replace(attrs.evolve(row, expires_at=None))

    def _delete_all(self, keys: Iterable[tuple[int, int]]) -> int:
        deleted = 0
        for key in keys:
            self._rows.remove(key)
            deleted += 1
        return deleted


class MemorySummaries:
    """Manual summaries by conversation and session."""

    def __init__(self, journal: Journal) -> None:
        self._conversations: Index[tuple[int, int], SummaryRecord] = Index(
            lambda s: [s.conversation_key], lambda s: s.session_key
        )
        self._summaries: Indexed[tuple[int, int], SummaryRecord] = Indexed(
            journal, self._conversations
        )

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
