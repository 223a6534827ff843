"""Looking up locks, and the entries that want them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import attrs

from vitehub_chat.state.sql.columns import ENTRIES, LOCKS
from vitehub_chat.state.sql.driver import Columns, Statement, Value
from vitehub_chat.state.sql.known import Known, LockPart
from vitehub_chat.state.sql.looks.look import Answers, Asking
from vitehub_chat.state.tables import Lanes


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
    """The entries of a conversation that have not ended, with their locks.

    Those that were recorded in a session whose rows it has, wherever they arrived, come with them.
    """

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
        known.open_entries[self.encoded] = tuple(
            entry.ticket_id for entry in found if entry.conversation == self.encoded
        )


@attrs.frozen
class StalledLook:
    """The open entries whose lock nobody holds."""

    rank: ClassVar[int] = 0
    now: int
    above: int
    limit: int

    @property
    def range(self) -> tuple[int, int, int]:
        """What tells it from others."""
        return self.now, self.above, self.limit

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        return [(asking.texts["entries.stalled"], attrs.asdict(self))]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        known.stalled[self.range] = tuple(ENTRIES.all(map(tuple, answers[0])))


@attrs.frozen
class PayloadsLook:
    """The entries that still have their payload."""

    rank: ClassVar[int] = 0
    above: int
    limit: int

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        return [(asking.texts["entries.with_payload"], attrs.asdict(self))]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        found = ENTRIES.all(map(tuple, answers[0]))
        known.payloads[(self.above, self.limit)] = tuple(found)


@attrs.frozen
class CountLook:
    """How many there are of a kind in a conversation, or in one of its sessions.

    Attributes:
        lanes: For entries of a session, the lanes of those that wait for it.
    """

    rank: ClassVar[int] = 0
    kind: str
    encoded: str
    session_key: int | None
    lanes: Lanes = ("", "")

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        values = {
            "encoded": self.encoded,
            "session_key": self.session_key,
            "lane": self.lanes[0],
            "base_lane": self.lanes[1],
            "now": asking.now,
        }
        is_narrow = self.kind != "summaries" and self.session_key is not None
        in_session = "_of_session" if is_narrow else ""
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
