"""The table of accepted messages, in SQL."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.state.records import EntryRecord
from vitehub_chat.state.sql.mapping import Records, Statements, Values

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

    def delete_conversation(self, conversation: str, session_key: int | None, /) -> int:
        """Delete the entries of a conversation with their claims, or those of one session."""
        values = {"conversation": conversation, "session_key": session_key}
        whole = session_key is None
        return self._sql.delete(
            "entries.delete_conversation" if whole else "entries.delete_session", values
        )

    def release_claims(self, claim_keys: Sequence[str], /) -> None:
        """Let ended entries forget these claims."""
        for claim_key in claim_keys:
            self._sql.change("entries.release_claim", {"claim_key": claim_key})

    def _one(self, name: str, values: Values) -> EntryRecord | None:
        return _records.one(self._sql.fetch(name, values))

    def _all(self, name: str, values: Values) -> list[EntryRecord]:
        return _records.all(self._sql.fetch_all(name, values))
