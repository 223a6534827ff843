"""Threads: very many of them, with one message each, through the steps of a store in memory.

The steps are called as the store's own calls do, without what lies around them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import attrs

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.state.memory.store import MemoryTables
from vitehub_chat.state.providers.memory import MemoryAgentState
from vitehub_chat.state.steps import admission, finishing, granting, sweeping
from vitehub_chat.state.steps.recording import Writing
from vitehub_chat.state.values import NewEntry, TurnEnd

SECOND = 1_000_000
LEASE = 30 * SECOND
KEPT_S = 100
AT_ONCE = 100
PAUSE_S = 10
"""How much time passes after so many threads."""
_AGENT = "a"
_STATM = Path("/proc/self/statm")
_COMPLETE = TurnEnd(status="complete")
_POLICY = ConcurrencyPolicy()

End = Callable[[MemoryTables, Sequence[str], int], int]
"""What becomes of messages that were accepted; returns the time then."""


@attrs.frozen
class Ending:
    """How messages end, and how many do."""

    name: str
    count: int
    end: End


class Threads:
    """Threads of one store; each is used once."""

    def __init__(self, state: MemoryAgentState, ending: Ending) -> None:
        self._store = state._store
        self._end = ending.end
        self._used = 0
        self._now = 0
        self.most_entries = 0

    @property
    def most_allowed(self) -> int:
        """How many entries there may be while claims last and are cleaned up step by step."""
        return AT_ONCE * (KEPT_S // PAUSE_S + 2)

    def run(self, count: int) -> None:
        """Send a message in so many new threads, and let each end."""
        for start in range(self._used, self._used + count, AT_ONCE):
            self._store.write(partial(self._send, start))
            self.most_entries = max(self.most_entries, len(self._store.tables.entries))
        self._used += count

    def pass_time(self) -> None:
        """Let everything be over, and look after the store as processes do that serve agents."""
        self._now += KEPT_S * SECOND + LEASE
        while self._store.write(lambda tx: sweeping.purge(tx, self._now)):
            pass

    def left(self) -> dict[str, int]:
        """Return how much there is of what belongs to turns."""
        entries = self._store.tables.entries
        indexes = {name: len(each) for name, each in vars(entries).items() if hasattr(each, "keys")}
        counts = {"locks": len(self._store.tables.locks), "entries": len(entries), **indexes}
        return {name: count for name, count in counts.items() if count}

    def _send(self, start: int, tx: MemoryTables) -> None:
        names = [str(number) for number in range(start, start + AT_ONCE)]
        terms = admission.Terms(
            policy=_POLICY, lease=LEASE, dedupe_ttl=KEPT_S * SECOND, now=self._now
        )
        for name in names:
            admission.admit(tx, _entry(name), terms)
        self._now = self._end(tx, names, self._now) + PAUSE_S * SECOND


def resident_bytes() -> int:
    """Return how much memory this process has."""
    pages = int(_STATM.read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _entry(name: str) -> NewEntry:
    return NewEntry(
        ticket_id=name,
        lock_key=f"lock {name}",
        conversation=ConversationKey(None, _AGENT, None, f"thread {name}"),
        wanted_id=None,
        claim_id="m",
        payload="{}",
        owner="somebody",
    )


def _end_as(status: Literal["complete", "error"]) -> End:
    end = TurnEnd(status=status)

    def finish(tx: MemoryTables, names: Sequence[str], now: int) -> int:
        for name in names:
            finishing.finish(tx, name, None, end, "somebody", LEASE, Writing(now=now))
        return now

    return finish


def _take_back(tx: MemoryTables, names: Sequence[str], now: int) -> int:
    for name in names:
        finishing.withdraw(tx, name, "somebody", LEASE, now)
    return now


def _die(tx: MemoryTables, _: Sequence[str], now: int) -> int:
    """Leave the messages to a sweep, which finds them once the leases are over."""
    later = now + LEASE
    for lock_key in sweeping.find_lines(tx, later, agent=_AGENT, above=0).lock_keys:
        run = granting.grant_next(tx, lock_key, "sweeper", LEASE, later)
        assert run is not None
        finishing.finish(tx, run.ticket_id, None, _COMPLETE, "sweeper", LEASE, Writing(now=later))
    return later


THREADS = int(os.environ.get("VITEHUB_THREADS", "40000"))
"""How many threads there are in all; a million take some minutes."""
ENDINGS = (
    Ending("answered", THREADS // 4, _end_as("complete")),
    Ending("failed", THREADS // 4, _end_as("error")),
    Ending("taken_back", THREADS // 4, _take_back),
    Ending("left_by_the_dead", THREADS // 4, _die),
)
