"""The table of accepted messages, in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice

import attrs

from vitehub_chat.state.memory.indexed import Counter, Index, Indexed, Journal
from vitehub_chat.state.memory.locks import MemoryLocks
from vitehub_chat.state.memory.sessions import MemorySessions
from vitehub_chat.state.records import EntryRecord
from vitehub_chat.state.tables import Lanes

_ALL_OVER = "over"
"""The one group of the entries that are over."""
_ALL_OPEN = "open"
"""The one group of the others."""
_ALL_PAYLOADS = "payloads"
"""The one group of those that still have their payload."""


class MemoryEntries:
    """Accepted messages by ticket, and in lines of arrival."""

    def __init__(self, journal: Journal, locks: MemoryLocks, sessions: MemorySessions) -> None:
        self._locks = locks
        self._sessions = sessions
        self._positions = Counter(journal)
        self._claims = _by_arrival(_of_claim)
        self._waiting = _by_arrival(_of_queue)
        self._expiring: Index[str, EntryRecord] = Index(
            _of_expiring_queue, lambda entry: entry.expires_at
        )
        self._runs = _by_arrival(_of_run)
        self._unrecorded = _by_arrival(_of_conversation)
        self._recorded = _by_arrival(_of_session)
        self._payloads = _by_arrival(_of_payloads)
        self._open = _by_arrival(lambda entry: [] if _is_over(entry) else [entry.conversation])
        self._all_open = _by_arrival(lambda entry: [] if _is_over(entry) else [_ALL_OPEN])
        self._over: Index[str, EntryRecord] = Index(
            lambda entry: [_ALL_OVER] if _is_over(entry) else [], lambda entry: entry.keep_until
        )
        self._entries: Indexed[str, EntryRecord] = Indexed(
            journal,
            self._claims,
            self._waiting,
            self._expiring,
            self._runs,
            self._unrecorded,
            self._recorded,
            self._payloads,
            self._open,
            self._all_open,
            self._over,
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

    def last_waiting(self, lock_key: str, /) -> EntryRecord | None:
        """Return the waiting entry that came last."""
        return self._entries.get(self._waiting.last(lock_key))

    def stalled(self, now: int, above: int, limit: int, /) -> Sequence[EntryRecord]:
        """Return open entries whose lock nobody holds any more or yet, by arrival."""
        found = map(self.get, self._all_open.between(_ALL_OPEN, above=above))
        return list(islice((e for e in found if e and not self._is_held(e, now)), limit))

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
        return self._delete_all(islice(self._over.between(_ALL_OVER, below=now + 1), limit))

    def keep_at_most(self, limit: int, /) -> int:
        """Delete ended and lost entries beyond a number of them, first what is kept shortest."""
        surplus = max(0, self._over.count(_ALL_OVER) - limit)
        return self._delete_all(islice(self._over.between(_ALL_OVER), surplus))

    def open_of_session(self, session_key: int, /) -> Sequence[EntryRecord]:
        """Return the entries recorded in a session that have not ended, by arrival."""
        recorded = self._entries.all(self._recorded.keys(session_key))
        return [entry for entry in recorded if not _is_over(entry)]

    def with_payload(self, above: int, limit: int, /) -> Sequence[EntryRecord]:
        """Return entries that still have their payload, by arrival."""
        keys = self._payloads.between(_ALL_PAYLOADS, above=above)
        return self._entries.all(islice(keys, limit))

    def delete_open(self) -> None:
        """Delete the entries that have not ended."""
        self._delete_all(self._all_open.keys(_ALL_OPEN))

    def delete_conversation(self, conversation: str, conversation_key: int, /) -> int:
        """Delete the entries of a conversation with their claims, and count them."""
        doomed = self._unrecorded.keys(conversation)
        for session in self._sessions.all_of(conversation_key):
            doomed = [*doomed, *self._recorded.keys(session.key)]
        return self._delete_all(doomed)

    def delete_session(self, conversation: str, session_key: int, lanes: Lanes, /) -> int:
        """Delete the entries of one session with their claims, and count them."""
        waiting = self._entries.all(self._unrecorded.keys(conversation))
        doomed = [e.ticket_id for e in waiting if e.lane in lanes and not e.starts_session]
        return self._delete_all([*self._recorded.keys(session_key), *doomed])

    def release_claims(self, session_key: int, run_ticket_ids: Sequence[str], /) -> None:
        """Let ended entries of runs that were recorded in a session forget their claims."""
        for entry in self._entries.all(self._recorded.keys(session_key)):
            if entry.state == "ended" and entry.run_ticket_id in run_ticket_ids:
                self.update(attrs.evolve(entry, claim_key=None))

    def _is_held(self, entry: EntryRecord, now: int) -> bool:
        lock = self._locks.get(entry.lock_key)
        return lock is not None and lock.until > now

    def _delete_all(self, ticket_ids: Iterable[str]) -> int:
        doomed = list(ticket_ids)
        for ticket_id in doomed:
            self.delete(ticket_id)
        return len(doomed)


def _by_arrival(groups: Callable[[EntryRecord], Iterable[Hashable]]) -> Index[str, EntryRecord]:
    return Index(groups, lambda entry: entry.position)


def _is_over(entry: EntryRecord) -> bool:
    return entry.state in {"ended", "lost"}


def _of_claim(entry: EntryRecord) -> Iterable[Hashable]:
    return [] if entry.claim_key is None else [entry.claim_key]


def _of_queue(entry: EntryRecord) -> Iterable[Hashable]:
    waits = entry.state == "waiting"
    return [entry.lock_key, (entry.lock_key, entry.lane)] if waits else []


def _of_expiring_queue(entry: EntryRecord) -> Iterable[Hashable]:
    waits = entry.state == "waiting"
    return [entry.lock_key] if waits and entry.expires_at is not None else []


def _of_run(entry: EntryRecord) -> Iterable[Hashable]:
    return [entry.run_ticket_id] if entry.state in {"running", "recorded"} else []


def _of_conversation(entry: EntryRecord) -> Iterable[Hashable]:
    return [entry.conversation] if entry.session_key is None else []


def _of_session(entry: EntryRecord) -> Iterable[Hashable]:
    return [] if entry.session_key is None else [entry.session_key]


def _of_payloads(entry: EntryRecord) -> Iterable[Hashable]:
    return [] if entry.payload is None else [_ALL_PAYLOADS]
