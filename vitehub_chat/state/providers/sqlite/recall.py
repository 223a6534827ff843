"""Recall: what a connection was answered, as long as nobody has changed the file since.

SQLite tells a connection by a number whether another one has written since it last asked, one of
this process or of another. While that number stays, what was answered is what is stored, and
nothing is asked, compared or decoded again. With any other number everything is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, NamedTuple

from vitehub_chat.model.forking import ForkSafeLock

RECALLED_BYTES: Final = 4 * 1024 * 1024
"""How long the texts of all answers together may be; their rows are kept rows in most cases."""

_OVERHEAD: Final = 512


class Answer(NamedTuple):
    """What was answered.

    Attributes:
        value: That.
        size: How many bytes it counts as.
        since: The time it was asked for, in microseconds; it says nothing of earlier ones.
        until: When the first row in it expires, or None.
    """

    value: object
    size: int = 0
    since: int = 0
    until: int | None = None


class Recall:
    """Answers by question, for one version of the file; the least recently used ones leave.

    One reader at a time uses it; any thread may clear it.
    """

    def __init__(self, limit: int = RECALLED_BYTES) -> None:
        """Say how many bytes are kept at most."""
        self._limit = limit
        self._lock = ForkSafeLock()
        self._version: Hashable = None
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        """Return how many answers there are."""
        return len(self._answers)

    def begin(self, version: Hashable) -> None:
        """Say which version the reader sees, and what it sees through; another one ends all."""
        with self._lock:
            if version != self._version:
                self._forget(version)

    def find(self, question: Hashable, now: int = 0) -> Answer | None:
        """Return the answer to a question at a time, or None if it has to be asked."""
        with self._lock:
            answer = self._answers.get(question)
            if answer is None or now < answer.since:
                return None
            if answer.until is not None and now >= answer.until:
                return None
            self._answers.move_to_end(question)
            return answer

    def keep(self, version: Hashable, question: Hashable, answer: Answer) -> None:
        """Keep an answer of a version; no-op if that was cleared meanwhile."""
        size = _OVERHEAD + answer.size
        with self._lock:
            if version != self._version or size > self._limit:
                return
            before = self._answers.pop(question, None)
            self._size += size - (0 if before is None else _OVERHEAD + before.size)
            self._answers[question] = answer
            while self._size > self._limit:
                _, oldest = self._answers.popitem(last=False)
                self._size -= _OVERHEAD + oldest.size

    def clear(self) -> None:
        """Forget everything, and what is being read, too."""
        with self._lock:
            self._forget(None)

    def _forget(self, version: Hashable) -> None:
        self._version = version
        self._answers.clear()
        self._size = 0
