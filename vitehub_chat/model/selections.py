"""Selections: what became of every message, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from vitehub_chat.model.messages import Message
from vitehub_chat.model.results import SelectionEntry, SelectionReason

KEPT: frozenset[SelectionReason] = frozenset({"current", "window", "retained"})
"""The reasons for which a message is kept."""


class Selection(Sequence[SelectionEntry]):
    """One entry per message, in order; entries are built when they are looked at.

    A selection over a long thread is mostly cut messages that nobody asks about.
    """

    __slots__ = ("_messages", "_reasons", "_seqs")

    def __init__(
        self,
        messages: Sequence[Message],
        reasons: Sequence[SelectionReason],
        seqs: Mapping[int, int] | None = None,
    ) -> None:
        self._messages = messages
        self._reasons = reasons
        self._seqs = seqs or {}

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> SelectionEntry: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[SelectionEntry, ...]: ...

    def __getitem__(self, index: int | slice) -> SelectionEntry | tuple[SelectionEntry, ...]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        at = range(len(self))[index]
        message, reason = self._messages[at], self._reasons[at]
        return SelectionEntry(message.id, self._seqs.get(at), message.role, reason in KEPT, reason)

    def __iter__(self) -> Iterator[SelectionEntry]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Selection({dict(self.counts())})"

    def counts(self) -> Mapping[SelectionReason, int]:
        """Return how many messages each reason has."""
        return Counter(self._reasons)
