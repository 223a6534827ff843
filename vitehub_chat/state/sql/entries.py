"""The table of accepted messages, in SQL."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.state.records import EntryRecord
from vitehub_chat.state.sql.mapping import Records, Statements, Values
from vitehub_chat.state.tables import Lanes

_records = Records(EntryRecord, facts=("starts_session", "coalesces"))


class SqlEntries:
    """Accepted messages, by arrival."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    def get(self, ticket_id: str, /) -> EntryRecord | None:
        """Return one entry."""
        return self._one("entries.get", {"ticket_id": ticket_id})

    def by_claim(self, claim_key: str, /) -> EntryRecord | None:
        """Return the entry that holds a claim; at most one does."""
        return self._one("entries.by_claim", {"claim_key": claim_key})

    def insert(self, entry: EntryRecord, /) -> EntryRecord:
        """Insert an entry behind all others and return it with its position."""
        (position,) = self._sql.fetch_existing("entries.insert", _records.values_of(entry))
        return attrs.evolve(entry, position=position)

    def update(self, entry: EntryRecord, /) -> None:
        """Replace an entry by its ticket."""
        self._sql.change("entries.update", _records.values_of(entry))

    def delete(self, ticket_id: str, /) -> None:
        """Delete an entry; no-op if there is none."""
        self._sql.change("entries.delete", {"ticket_id": ticket_id})

    def first_waiting(self, lock_key: str, /) -> EntryRecord | None:
        """Return the waiting entry that came first."""
        return self._one("entries.first_waiting", {"lock_key": lock_key})

    def last_waiting(self, lock_key: str, /) -> EntryRecord | None:
        """Return the waiting entry that came last."""
        return self._one("entries.last_waiting", {"lock_key": lock_key})

    def stalled(self, now: int, above: int, limit: int, /) -> Sequence[EntryRecord]:
        """Return open entries whose lock nobody holds any more or yet, by arrival."""
        return self._all("entries.stalled", {"now": now, "above": above, "limit": limit})

    def waiting_in_lane(self, lock_key: str, lane: str, /) -> Sequence[EntryRecord]:
        """Return the waiting entries of one lane, by arrival."""
        return self._all("entries.waiting_in_lane", {"lock_key": lock_key, "lane": lane})

    def count_waiting(self, lock_key: str, now: int, /) -> int:
        """Count the waiting entries that are not expired."""
        values = {"lock_key": lock_key, "now": now}
        count: int = self._sql.fetch_existing("entries.count_waiting", values)[0]
        return count

    def of_run(self, run_ticket_id: str, /) -> Sequence[EntryRecord]:
        """Return the running and recorded entries of a run, by arrival."""
        return self._all("entries.of_run", {"run_ticket_id": run_ticket_id})

    def open_in(self, conversation: str, /) -> Sequence[EntryRecord]:
        """Return the entries of a conversation that have not ended, by arrival."""
        return self._all("entries.open_in", {"conversation": conversation})

    def purge(self, now: int, limit: int, /) -> int:
        """Delete at most `limit` ended or lost entries whose time to be kept is over."""
        return self._sql.change("entries.purge", {"now": now, "limit": limit})

    def open_of_session(self, session_key: int, /) -> Sequence[EntryRecord]:
        """Return the entries recorded in a session that have not ended, by arrival."""
        return self._all("entries.open_of_session", {"session_key": session_key})

    def with_payload(self, above: int, limit: int, /) -> Sequence[EntryRecord]:
        """Return entries that still have their payload, by arrival."""
        return self._all("entries.with_payload", {"above": above, "limit": limit})

    def delete_conversation(self, conversation: str, conversation_key: int, /) -> int:
        """Delete the entries of a conversation with their claims, and count them."""
        values = {"conversation": conversation, "conversation_key": conversation_key}
        return self._sql.delete("entries.delete_conversation", values)

    def delete_session(self, conversation: str, session_key: int, lanes: Lanes, /) -> int:
        """Delete the entries of one session with their claims, and count them."""
        values = {
            "conversation": conversation,
            "session_key": session_key,
            "lane": lanes[0],
            "base_lane": lanes[1],
        }
        return self._sql.delete("entries.delete_session", values)

    def release_claims(self, session_key: int, run_ticket_ids: Sequence[str], /) -> None:
        """Let ended entries of runs that were recorded in a session forget their claims."""
        for ticket_id in run_ticket_ids:
            values = {"session_key": session_key, "run_ticket_id": ticket_id}
            self._sql.change("entries.release_claims", values)

    def _one(self, name: str, values: Values) -> EntryRecord | None:
        return _records.one(self._sql.fetch(name, values))

    def _all(self, name: str, values: Values) -> list[EntryRecord]:
        return _records.all(self._sql.fetch_all(name, values))
