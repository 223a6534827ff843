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

    __slots__ = ("_messages", "_reasons", "_seqs", "_tokens")

    def __init__(
        self,
        messages: Sequence[Message],
        reasons: Sequence[SelectionReason],
        seqs: Mapping[int, int] | None = None,
        tokens: Mapping[int, int] | None = None,
    ) -> None:
        self._messages = messages
        self._reasons = reasons
        self._seqs = seqs or {}
        self._tokens = tokens or {}

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
        is_kept = reason in KEPT
        tokens = self._tokens.get(at)
        return SelectionEntry(message.id, self._seqs.get(at), message.role, is_kept, reason, tokens)

    def __iter__(self) -> Iterator[SelectionEntry]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Selection({dict(self.counts())})"

    @property
    def reasons(self) -> Sequence[SelectionReason]:
        """The reason of each message, in order."""
        return self._reasons

    def kept(self) -> list[int]:
        """Return the indices of the kept messages, ascending."""
        return [index for index, reason in enumerate(self._reasons) if reason in KEPT]

    def seq_of(self, index: int) -> int | None:
        """Return the number of a message that is a stored row, or None."""
        return self._seqs.get(index)

    def fitted(
        self, reasons: Mapping[int, SelectionReason], tokens: Mapping[int, int]
    ) -> Selection:
        """Return the same with other reasons for some messages, and with sizes, by index."""
        changed = list(self._reasons)
        for index, reason in reasons.items():
            changed[index] = reason
        return Selection(self._messages, changed, self._seqs, tokens)

    def counts(self) -> Mapping[SelectionReason, int]:
        """Return how many messages each reason has."""
        return Counter(self._reasons)
