"""The table of accepted messages, in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice

import attrs

from vitehub_chat.state.memory.indexed import Counter, Index, Indexed, Journal
from vitehub_chat.state.records import EntryRecord

_ALL_OVER = "over"
"""The one group of the entries that are over."""


class MemoryEntries:
    """Accepted messages by ticket, and in lines of arrival."""

    def __init__(self, journal: Journal) -> None:
        self._positions = Counter(journal)
        self._claims = _by_arrival(_of_claim)
        self._waiting = _by_arrival(_of_queue)
        self._expiring: Index[str, EntryRecord] = Index(
            _of_expiring_queue, lambda entry: entry.expires_at
        )
        self._runs = _by_arrival(_of_run)
        self._conversations = _by_arrival(_of_conversation)
        self._open = _by_arrival(lambda entry: [] if _is_over(entry) else [entry.conversation])
        self._over: Index[str, EntryRecord] = Index(
            lambda entry: [_ALL_OVER] if _is_over(entry) else [], lambda entry: entry.keep_until
        )
        self._entries: Indexed[str, EntryRecord] = Indexed(
            journal,
            self._claims,
            self._waiting,
            self._expiring,
            self._runs,
            self._conversations,
            self._open,
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

    def delete_conversation(self, conversation: str, session_key: int | None, /) -> int:
        """Delete the entries of a conversation with their claims, or those of one session."""
        return self._delete_all(self._conversations.keys((conversation, session_key)))

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
    """Belong to the conversation and, once recorded, to its session."""
    return dict.fromkeys([(entry.conversation, None), (entry.conversation, entry.session_key)])
