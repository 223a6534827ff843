"""The tables as plain as possible: lists and loops, to compare the tables of providers with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from vitehub_chat.state.tables import (
        DocumentQuery,
        Lanes,
        RowQuery,
        SessionQuery,
        Transaction,
    )


class PlainLocks:
    def __init__(self) -> None:
        self.all: dict[str, LockRecord] = {}
        self.token = 0

    def get(self, lock_key: str, /) -> LockRecord | None:
        return self.all.get(lock_key)

    def put(self, lock: LockRecord, /) -> None:
        self.all[lock.lock_key] = lock

    def delete(self, lock_key: str, /) -> None:
        self.all.pop(lock_key, None)

    def next_token(self) -> int:
        self.token += 1
        return self.token


class PlainEntries:
    """Accepted messages in the order of arrival."""

    def __init__(self, locks: PlainLocks, sessions: PlainSessions) -> None:
        self.locks = locks
        self.sessions = sessions
        self.all: list[EntryRecord] = []
        self.position = 0

    def get(self, ticket_id: str, /) -> EntryRecord | None:
        return next((e for e in self.all if e.ticket_id == ticket_id), None)

    def by_claim(self, claim_key: str, /) -> EntryRecord | None:
        return next((e for e in self.all if e.claim_key == claim_key), None)

    def insert(self, entry: EntryRecord, /) -> EntryRecord:
        self.position += 1
        self.all.append(attrs.evolve(entry, position=self.position))
        return self.all[-1]

    def update(self, entry: EntryRecord, /) -> None:
        self.all = [entry if e.ticket_id == entry.ticket_id else e for e in self.all]

    def delete(self, ticket_id: str, /) -> None:
        self.all = [e for e in self.all if e.ticket_id != ticket_id]

    def first_waiting(self, lock_key: str, /) -> EntryRecord | None:
        return next(iter(self._waiting(lock_key)), None)

    def last_waiting(self, lock_key: str, /) -> EntryRecord | None:
        return next(reversed(self._waiting(lock_key)), None)

    def stalled(self, now: int, above: int, limit: int, /) -> Sequence[EntryRecord]:
        over = {"ended", "lost"}
        held = {lock.lock_key for lock in self.locks.all.values() if lock.until > now}
        found = [e for e in self.all if e.state not in over and e.lock_key not in held]
        return [e for e in found if e.position > above][:limit]

    def waiting_in_lane(self, lock_key: str, lane: str, /) -> Sequence[EntryRecord]:
        return [e for e in self._waiting(lock_key) if e.lane == lane]

    def count_waiting(self, lock_key: str, now: int, /) -> int:
        waiting = self._waiting(lock_key)
        return sum(e.expires_at is None or e.expires_at > now for e in waiting)

    def of_run(self, run_ticket_id: str, /) -> Sequence[EntryRecord]:
        states = {"running", "recorded"}
        return [e for e in self.all if e.run_ticket_id == run_ticket_id and e.state in states]

    def open_in(self, conversation: str, /) -> Sequence[EntryRecord]:
        over = {"ended", "lost"}
        return [e for e in self.all if e.conversation == conversation and e.state not in over]

    def purge(self, now: int, limit: int, /) -> int:
        over = [e for e in self.all if e.state in {"ended", "lost"} and e.keep_until <= now]
        return self._drop(over[:limit])

    def open_of_session(self, session_key: int, /) -> Sequence[EntryRecord]:
        over = {"ended", "lost"}
        return [e for e in self.all if e.session_key == session_key and e.state not in over]

    def with_payload(self, above: int, limit: int, /) -> Sequence[EntryRecord]:
        found = [e for e in self.all if e.payload is not None and e.position > above]
        return found[:limit]

    def delete_conversation(self, conversation: str, conversation_key: int, /) -> int:
        keys = {s.key for s in self.sessions.all_of(conversation_key)}
        waiting = self._unrecorded(conversation)
        return self._drop([*waiting, *(e for e in self.all if e.session_key in keys)])

    def delete_session(self, conversation: str, session_key: int, lanes: Lanes, /) -> int:
        waiting = self._unrecorded(conversation)
        meant = [e for e in waiting if e.lane in lanes and not e.starts_session]
        return self._drop([*meant, *(e for e in self.all if e.session_key == session_key)])

    def release_claims(self, session_key: int, run_ticket_ids: Sequence[str], /) -> None:
        for entry in self.all:
            is_of_run = entry.session_key == session_key and entry.run_ticket_id in run_ticket_ids
            if is_of_run and entry.state == "ended":
                self.update(attrs.evolve(entry, claim_key=None))

    def _unrecorded(self, conversation: str) -> list[EntryRecord]:
        return [e for e in self.all if e.conversation == conversation and e.session_key is None]

    def _waiting(self, lock_key: str) -> list[EntryRecord]:
        return [e for e in self.all if e.lock_key == lock_key and e.state == "waiting"]

    def _drop(self, doomed: list[EntryRecord]) -> int:
        self.all = [e for e in self.all if e not in doomed]
        return len(doomed)


class PlainConversations:
    def __init__(self) -> None:
        self.all: dict[str, ConversationRecord] = {}

    def get(self, encoded: str, /) -> ConversationRecord | None:
        return self.all.get(encoded)

    def ensure(self, encoded: str, /) -> ConversationRecord:
        fresh = ConversationRecord(key=len(self.all) + 1, encoded=encoded, last_seq=0, generation=0)
        return self.all.setdefault(encoded, fresh)

    def allocate(self, key: int, count: int, /) -> int:
        old = self._by_key(key)
        self.all[old.encoded] = attrs.evolve(old, last_seq=old.last_seq + count)
        return old.last_seq + 1

    def next_generation(self, key: int, /) -> int:
        old = self._by_key(key)
        self.all[old.encoded] = attrs.evolve(old, generation=old.generation + 1)
        return old.generation + 1

    def _by_key(self, key: int) -> ConversationRecord:
        return next(c for c in self.all.values() if c.key == key)


class PlainSessions:
    """Sessions in the order of their keys."""

    def __init__(self) -> None:
        self.all: list[SessionRecord] = []
        self.key = 0

    def get(self, key: int, /) -> SessionRecord | None:
        return self._newest([s for s in self.all if s.key == key])

    def by_id(self, scope: str, session_id: str, /) -> SessionRecord | None:
        return self._newest(
            [s for s in self.all if s.scope == scope and s.session_id == session_id]
        )

    def latest(self, scope: str, base: str | None, /) -> SessionRecord | None:
        return self._newest([s for s in self.all if s.scope == scope and s.base == base])

    def of_conversation(
        self, conversation_key: int, session_id: str | None, /
    ) -> SessionRecord | None:
        return self._newest(
            [s for s in self.all_of(conversation_key) if s.session_id == session_id]
        )

    def insert(self, session: SessionRecord, /) -> SessionRecord:
        self.key += 1
        self.all.append(attrs.evolve(session, key=self.key))
        return self.all[-1]

    def update(self, session: SessionRecord, /) -> None:
        self.all = [session if s.key == session.key else s for s in self.all]

    def list(self, query: SessionQuery, /) -> Sequence[SessionRecord]:
        found = [
            s
            for s in self.all
            if s.tenant == query.tenant
            and query.agent in {None, s.agent}
            and query.user_key in {None, s.user_key}
            and query.conversation_key in {None, s.conversation_key}
            and (query.after is None or (s.last_message_at, s.key) < query.after)
            and (query.updated_since is None or s.last_message_at >= query.updated_since)
        ]
        found.sort(key=lambda s: (s.last_message_at, s.key), reverse=True)
        return found[: query.limit]

    def all_of(self, conversation_key: int, /) -> Sequence[SessionRecord]:
        return [s for s in self.all if s.conversation_key == conversation_key]

    def delete(self, key: int, /) -> None:
        self.all = [s for s in self.all if s.key != key]

    def _newest(self, found: Sequence[SessionRecord]) -> SessionRecord | None:
        return found[-1] if found else None


class PlainRows:
    def __init__(self, conversations: PlainConversations) -> None:
        self.all: list[RowRecord] = []
        self.conversations = conversations

    def remove(self, rows: Sequence[RowRecord], /) -> None:
        self.all = [r for r in self.all if r not in rows]

    def by_author(self, author: str, after: int, limit: int, /) -> Sequence[AuthoredRow]:
        found = sorted(
            (row.conversation_key << 32) + row.seq for row in self.all if row.author == author
        )
        return [self._authored(each) for each in found if each > after][:limit]

    def _authored(self, row_id: int) -> AuthoredRow:
        places = {(r.conversation_key << 32) + r.seq: r for r in self.all}
        encoded = {c.key: c.encoded for c in self.conversations.all.values()}
        row = places[row_id]
        home = encoded[row.conversation_key]
        return AuthoredRow(id=row_id, conversation=home, message_id=row.message_id)

    def by_message(self, conversation_key: int, message_id: str, now: int, /) -> RowRecord | None:
        live = [r for r in self._of(conversation_key) if is_live(r, now)]
        return next((r for r in live if r.message_id == message_id), None)

    def insert(self, row: RowRecord, /) -> None:
        message = (row.conversation_key, row.message_id)
        self.all = [r for r in self.all if (r.conversation_key, r.message_id) != message]
        self.all.append(row)

    def replace(self, row: RowRecord, /) -> None:
        place = (row.conversation_key, row.seq)
        self.all = [row if (r.conversation_key, r.seq) == place else r for r in self.all]

    def select(self, query: RowQuery, /) -> Sequence[RowRecord]:
        found = [
            r
            for r in self._of(query.conversation_key)
            if query.session_key in {None, r.session_key}
            and (query.is_shown is None or r.is_shown == query.is_shown)
            and (query.above is None or r.seq > query.above)
            and (query.below is None or r.seq < query.below)
            and is_live(r, query.now)
        ]
        found.sort(key=lambda r: r.seq, reverse=query.order == "descending")
        return found[: query.limit]

    def exists(self, query: RowQuery, /) -> bool:
        return bool(self.select(attrs.evolve(query, limit=1)))

    def pending(self, conversation_key: int, /) -> Sequence[RowRecord]:
        return [r for r in self._of(conversation_key) if r.status == "pending"]

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        inside = self._of(conversation_key)
        doomed = [r for r in inside if session_key in {None, r.session_key}]
        self.all = [r for r in self.all if r not in doomed]
        return len(doomed)

    def _of(self, conversation_key: int) -> list[RowRecord]:
        return [r for r in self.all if r.conversation_key == conversation_key]


class PlainSummaries:
    def __init__(self) -> None:
        self.all: dict[tuple[int, int], SummaryRecord] = {}

    def get(self, conversation_key: int, session_key: int, /) -> SummaryRecord | None:
        return self.all.get((conversation_key, session_key))

    def put(self, summary: SummaryRecord, /) -> None:
        self.all[summary.conversation_key, summary.session_key] = summary

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        doomed = [
            key for key in self.all if key[0] == conversation_key and session_key in {None, key[1]}
        ]
        for key in doomed:
            del self.all[key]
        return len(doomed)


class PlainDocuments:
    def __init__(self) -> None:
        self.all: dict[tuple[str, str, str], DocumentRecord] = {}

    def get(self, home: str, kind: DocumentKind, name: str, now: int, /) -> DocumentRecord | None:
        found = self.all.get((home, kind, name))
        return found if found is not None and is_live(found, now) else None

    def newest(
        self, home: str, kind: DocumentKind, session_key: int, now: int, /
    ) -> DocumentRecord | None:
        found = [d for d in self._of(home, kind, now) if d.session_key == session_key]
        return max(found, key=lambda d: (d.number, d.created_at), default=None)

    def numbered(self, query: DocumentQuery, /) -> Sequence[DocumentRecord]:
        found = self._of(query.home, query.kind, query.now)
        found = [d for d in found if query.session_key in {None, d.session_key}]
        found = [d for d in found if query.above < d.number < query.below]
        found.sort(key=lambda d: d.number, reverse=query.order == "descending")
        return found[: query.limit]

    def put_aside(self, after: tuple[str, str, str], limit: int, /) -> Sequence[DocumentRecord]:
        aside = (place for place in sorted(self.all) if place[1] in {"hidden", "superseded"})
        return [self.all[place] for place in aside if place > after][:limit]

    def put(self, document: DocumentRecord, /) -> None:
        self.all[document.home, document.kind, document.name] = document

    def delete(self, home: str, kind: DocumentKind, name: str, /) -> None:
        self.all.pop((home, kind, name), None)

    def delete_of(self, home: str, session_key: int | None, now: int, /) -> Mapping[str, int]:
        doomed = [d for d in self.all.values() if d.home == home]
        doomed = [d for d in doomed if session_key in {None, d.session_key}]
        for document in doomed:
            self.delete(document.home, document.kind, document.name)
        return Counter(d.kind for d in doomed if is_live(d, now))

    def _of(self, home: str, kind: DocumentKind, now: int) -> list[DocumentRecord]:
        found = [d for d in self.all.values() if (d.home, d.kind) == (home, kind)]
        return [d for d in found if is_live(d, now)]


class PlainTables:
    def __init__(self) -> None:
        self.locks = PlainLocks()
        self.conversations = PlainConversations()
        self.sessions = PlainSessions()
        self.entries = PlainEntries(self.locks, self.sessions)
        self.rows = PlainRows(self.conversations)
        self.summaries = PlainSummaries()
        self.documents = PlainDocuments()
        self.secret = b"plain"

    def copy(self) -> PlainTables:
        """Copy what a failing step would change; records are frozen, so the containers do."""
        twin = PlainTables()
        for name, table in vars(self).items():
            if name != "secret":
                fields = {key: copy(value) for key, value in vars(table).items()}
                vars(getattr(twin, name)).update(fields)
        twin.entries.locks = twin.locks
        twin.entries.sessions = twin.sessions
        twin.rows.conversations = twin.conversations
        return twin


def is_live(row: RowRecord | DocumentRecord, now: int) -> bool:
    return row.expires_at is None or row.expires_at > now


if TYPE_CHECKING:
    _conforms: Transaction = PlainTables()
