"""Looking up locks, and the entries that want them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import attrs

from vitehub_chat.state.sql.columns import ENTRIES, LOCKS
from vitehub_chat.state.sql.driver import Columns, Statement, Value
from vitehub_chat.state.sql.known import Known, LockPart
from vitehub_chat.state.sql.looks.look import Answers, Asking


@attrs.frozen(kw_only=True)
class LineLook:
    """A lock with its line: by its key, or by the ticket or the claim of an entry that wants it."""

    rank: ClassVar[int] = 0
    lock_key: str | None = None
    ticket_id: str | None = None
    claim_key: str | None = None

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        values: dict[str, Value] = attrs.asdict(self)
        names = ("loads.lock", "loads.named", "loads.waiting", "loads.running")
        return [(asking.texts[name], values) for name in names]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        locks, named, waiting, running = answers
        parts = learn_locks(known, locks)
        if self.ticket_id is not None:
            known.lock_keys.setdefault(self.ticket_id, None)
        if self.claim_key is not None:
            known.claims.setdefault(self.claim_key, None)
        for entry in ENTRIES.all(map(tuple, (*named, *waiting, *running))):
            known.add_entry(entry)
        for part in parts:
            part.has_line = True


@attrs.frozen
class OpenLook:
    """The entries of a conversation that have not ended, with their locks."""

    rank: ClassVar[int] = 0
    encoded: str

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        values: dict[str, Value] = {"encoded": self.encoded}
        names = ("loads.locks_of_open", "loads.open_entries")
        return [(asking.texts[name], values) for name in names]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        locks, entries = answers
        learn_locks(known, locks)
        found = ENTRIES.all(map(tuple, entries))
        for entry in found:
            known.add_entry(entry)
        found.sort(key=lambda entry: entry.position)
        known.open_entries[self.encoded] = tuple(entry.ticket_id for entry in found)


@attrs.frozen
class CountLook:
    """How many there are of a kind in a conversation, or in one of its sessions."""

    rank: ClassVar[int] = 0
    kind: str
    encoded: str
    session_key: int | None

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        values = {"encoded": self.encoded, "session_key": self.session_key, "now": asking.now}
        in_session = "_of_session" if self.kind == "rows" and self.session_key is not None else ""
        return [(asking.texts[f"loads.count_{self.kind}{in_session}"], values)]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        count = answers[0][0][0]
        known.counts[(self.kind, self.encoded, self.session_key)] = int(count or 0)


def learn_locks(known: Known, rows: Iterable[Columns]) -> list[LockPart]:
    """Note locks, those that nobody holds too."""
    parts = []
    for lock_key, revision, *held in rows:
        lock = None if held[0] is None else LOCKS.one(tuple(held))
        parts.append(known.add_lock(str(lock_key), _number(revision), lock))
    return parts


def _number(value: Value) -> int:
    return int(value or 0)
