"""Numbers: those that new conversations and sessions get, taken from the store in blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import ClassVar, Final, Literal

import attrs

from vitehub_chat.model.forking import ForkSafeLock
from vitehub_chat.state.sql.driver import Statement, Value
from vitehub_chat.state.sql.known import Known
from vitehub_chat.state.sql.looks.look import Answers, Asking

Kind = Literal["conversation", "session"]

BLOCK: Final = 16
"""How many are taken at once; those that a process does not use stay unused."""


class Numbers:
    """Numbers that are reserved for this process and not used yet; threads may share it."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._free: dict[str, deque[int]] = {}

    def add(self, known: Known) -> None:
        """Take over what was reserved."""
        with self._lock:
            for kind, last in known.reserved.items():
                self._free.setdefault(kind, deque()).extend(range(last - BLOCK + 1, last + 1))

    def take(self, kind: Kind, *, above: int = 0) -> int | None:
        """Return a number that nobody else gets, above another one; None if there is none left."""
        with self._lock:
            free = self._free.get(kind) or deque()
            while free:
                number = free.popleft()
                if number > above:
                    return number
            return None

    def has(self, kind: Kind) -> bool:
        """Tell whether any number is left."""
        return bool(self._free.get(kind))


@attrs.frozen
class ReservationLook:
    """More numbers: for sessions, or for conversations unless the one asked for is there."""

    rank: ClassVar[int] = 0
    kind: Kind
    encoded: str

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        values: dict[str, Value] = {"count": BLOCK, "encoded": self.encoded}
        return [(asking.texts[f"counters.reserve_{self.kind}s"], values)]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was reserved."""
        if answers[0]:
            known.reserved[self.kind] = int(answers[0][0][0] or 0)
