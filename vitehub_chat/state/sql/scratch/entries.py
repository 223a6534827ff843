"""The table of accepted messages as a step sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from vitehub_chat.state.records import EntryRecord
from vitehub_chat.state.sql.known import LockPart, is_open
from vitehub_chat.state.sql.looks.conversations import SessionsLook
from vitehub_chat.state.sql.looks.locks import (
    CountLook,
    LineLook,
    OpenLook,
    PayloadsLook,
    StalledLook,
)
from vitehub_chat.state.sql.looks.look import Miss
from vitehub_chat.state.sql.scratch.work import Removal, Work
from vitehub_chat.state.tables import Lanes


class ScratchEntries:
    """Accepted messages, by arrival.

    One that is over and need not be kept any more is not there; cleanup removes it.
    """

    def __init__(self, work: Work) -> None:
        self._work = work

    def get(self, ticket_id: str, /) -> EntryRecord | None:
        """Return one entry."""
        entry = self._find(ticket_id)
        if entry is None or (not is_open(entry) and entry.keep_until <= self._work.now):
            return None
        return entry

    def by_claim(self, claim_key: str, /) -> EntryRecord | None:
        """Return the entry that holds a claim; at most one does."""
        claims = self._work.known.claims
        if claim_key not in claims:
            self._work.assumed.append(LineLook(claim_key=claim_key))
            claims[claim_key] = None
        ticket_id = claims[claim_key]
        if ticket_id is not None:
            # Also one that is hidden: it has to let go of the claim before another takes it.
            return self._find(ticket_id)
        if claim_key not in self._work.moved_claims:
            self._work.free_claims.add(claim_key)
        return None

    def insert(self, entry: EntryRecord, /) -> EntryRecord:
        """Insert an entry behind all others and return it with its position."""
        entries = self._work.lock(entry.lock_key).entries
        last = max((each.position for each in entries.values()), default=0)
        placed = attrs.evolve(entry, position=last + 1)
        self._put(placed, before=None)
        return placed

    def update(self, entry: EntryRecord, /) -> None:
        """Replace an entry by its ticket."""
        before = self._find(entry.ticket_id)
        if before is not None:
            self._put(entry, before=before)

    def delete(self, ticket_id: str, /) -> None:
        """Delete an entry; no-op if there is none."""
        entry = self.get(ticket_id)
        if entry is not None:
            self._remove(entry)

    def first_waiting(self, lock_key: str, /) -> EntryRecord | None:
        """Return the waiting entry that came first."""
        return next(iter(self._waiting(lock_key)), None)

    def last_waiting(self, lock_key: str, /) -> EntryRecord | None:
        """Return the waiting entry that came last."""
        return next(reversed(self._waiting(lock_key)), None)

    def stalled(self, now: int, above: int, limit: int, /) -> Sequence[EntryRecord]:
        """Return open entries whose lock nobody holds any more or yet, by arrival."""
        look = StalledLook(now, above, limit)
        found = self._work.known.stalled.get(look.range)
        if found is None:
            raise Miss(look)
        return found

    def waiting_in_lane(self, lock_key: str, lane: str, /) -> Sequence[EntryRecord]:
        """Return the waiting entries of one lane, by arrival."""
        return [entry for entry in self._waiting(lock_key) if entry.lane == lane]

    def count_waiting(self, lock_key: str, now: int, /) -> int:
        """Count the waiting entries that are not expired."""
        waiting = self._waiting(lock_key)
        return sum(entry.expires_at is None or entry.expires_at > now for entry in waiting)

    def of_run(self, run_ticket_id: str, /) -> Sequence[EntryRecord]:
        """Return the running and recorded entries of a run, by arrival."""
        part = self._line_of_run(run_ticket_id)
        found = [] if part is None else part.entries.values()
        return _by_arrival(
            entry
            for entry in found
            if entry.run_ticket_id == run_ticket_id and entry.state in {"running", "recorded"}
        )

    def open_in(self, conversation: str, /) -> Sequence[EntryRecord]:
        """Return the entries of a conversation that have not ended, by arrival."""
        work = self._work
        tickets = work.known.open_entries.get(conversation)
        if tickets is None:
            raise Miss(OpenLook(conversation))
        work.open_counts.setdefault(conversation, len(tickets))
        found = (self._find(ticket_id) for ticket_id in tickets)
        return [entry for entry in found if entry is not None and is_open(entry)]

    def purge(self, _now: int, _limit: int, /) -> int:
        """Delete nothing: what need not be kept is hidden, and removed by cleanup."""
        return 0

    def open_of_session(self, session_key: int, /) -> Sequence[EntryRecord]:
        """Return the entries recorded in a session that have not ended, by arrival."""
        home = self._work.home_of(session_key)
        if home is None:
            return ()
        self.open_in(home.encoded)  # these were looked up together with it
        return self._known_open(lambda entry: entry.session_key == session_key)

    def with_payload(self, above: int, limit: int, /) -> Sequence[EntryRecord]:
        """Return entries that still have their payload, by arrival."""
        look = PayloadsLook(above, limit)
        found = self._work.known.payloads.get((above, limit))
        if found is None:
            raise Miss(look)
        return found

    def delete_conversation(self, conversation: str, conversation_key: int, /) -> int:
        """Delete the entries of a conversation with their claims, and count them."""
        work = self._work
        count = work.known.counts.get(("entries", conversation, None))
        if count is None:
            raise Miss(CountLook("entries", conversation, None))
        self.open_in(conversation)
        part = work.conversation(conversation)
        if not part.has_sessions and part.record is not None:
            raise Miss(SessionsLook(conversation))
        sessions = part.sessions
        for entry in self._known_open(
            lambda entry: (
                entry.session_key in sessions
                or (entry.session_key is None and entry.conversation == conversation)
            )
        ):
            self._remove(entry)
        if count:
            work.removals.append(Removal("entries", conversation, conversation_key, None))
        return count

    def delete_session(self, conversation: str, session_key: int, lanes: Lanes, /) -> int:
        """Delete the entries of one session with their claims, and count them."""
        work = self._work
        count = work.known.counts.get(("entries", conversation, session_key))
        if count is None:
            raise Miss(CountLook("entries", conversation, session_key, lanes))
        waiting = (
            entry
            for entry in self.open_in(conversation)
            if entry.session_key is None and entry.lane in lanes and not entry.starts_session
        )
        for entry in [*waiting, *self.open_of_session(session_key)]:
            self._remove(entry)
        if count:
            work.removals.append(Removal("entries", conversation, 0, session_key, lanes))
        return count

    def release_claims(self, session_key: int, run_ticket_ids: Sequence[str], /) -> None:
        """Let ended entries of runs that were recorded in a session forget their claims."""
        self._work.released_runs.update((session_key, each) for each in run_ticket_ids)
        parts = self._work.known.locks.values()
        for entry in [entry for part in parts for entry in part.entries.values()]:
            is_meant = entry.session_key == session_key and entry.run_ticket_id in run_ticket_ids
            if is_meant and entry.state == "ended":
                self.update(attrs.evolve(entry, claim_key=None))

    def _find(self, ticket_id: str) -> EntryRecord | None:
        lock_keys = self._work.known.lock_keys
        if ticket_id not in lock_keys:
            raise Miss(LineLook(ticket_id=ticket_id))
        lock_key = lock_keys[ticket_id]
        return None if lock_key is None else self._work.lock(lock_key).entries.get(ticket_id)

    def _put(self, entry: EntryRecord, *, before: EntryRecord | None) -> None:
        work = self._work
        work.note(("entry", entry.lock_key, entry.ticket_id), before)
        work.lock(entry.lock_key).entries[entry.ticket_id] = entry
        work.known.lock_keys[entry.ticket_id] = entry.lock_key
        self._move_claim(before, entry)

    def _remove(self, entry: EntryRecord) -> None:
        work = self._work
        work.note(("entry", entry.lock_key, entry.ticket_id), entry)
        del work.lock(entry.lock_key).entries[entry.ticket_id]
        self._move_claim(entry, None)

    def _move_claim(self, before: EntryRecord | None, after: EntryRecord | None) -> None:
        """Follow a claim from one entry to another; what it was at first stays noted."""
        work = self._work
        for entry, holder in ((before, None), (after, after)):
            if entry is not None and entry.claim_key is not None:
                work.moved_claims.add(entry.claim_key)
                ticket_id = None if holder is None else holder.ticket_id
                work.known.claims[entry.claim_key] = ticket_id

    def _known_open(self, is_wanted: Callable[[EntryRecord], bool]) -> list[EntryRecord]:
        """Return those of the known entries that have not ended, and rely on their locks."""
        parts = self._work.known.locks.values()
        known = [entry for part in parts for entry in part.entries.values() if is_open(entry)]
        found = [entry for entry in known if is_wanted(entry)]
        for entry in found:
            self._work.lock(entry.lock_key)
        return _by_arrival(found)

    def _waiting(self, lock_key: str) -> list[EntryRecord]:
        entries = self._work.lock(lock_key, with_line=True).entries.values()
        return _by_arrival(entry for entry in entries if entry.state == "waiting")

    def _line_of_run(self, run_ticket_id: str) -> LockPart | None:
        """Return the line with the entries of a run: that of the lock it has, or wanted."""
        work = self._work
        for part in work.known.locks.values():
            if part.lock is not None and part.lock.ticket_id == run_ticket_id:
                return work.lock(part.lock_key, with_line=True)
        if run_ticket_id not in work.known.lock_keys:
            raise Miss(LineLook(ticket_id=run_ticket_id))
        lock_key = work.known.lock_keys[run_ticket_id]
        return None if lock_key is None else work.lock(lock_key, with_line=True)


def _by_arrival(entries: Iterable[EntryRecord]) -> list[EntryRecord]:
    return sorted(entries, key=lambda entry: entry.position)
