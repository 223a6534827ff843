"""Look: one thing to look up, and how the answer becomes known."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Protocol

import attrs

from vitehub_chat.state.sql.driver import Columns, Statement
from vitehub_chat.state.sql.known import Known
from vitehub_chat.state.sql.texts import Texts

Answers = Sequence[Sequence[Columns]]
"""The rows of each statement of a look."""


@attrs.frozen
class Asking:
    """What every look asks with: the texts, and the time of the call in microseconds."""

    texts: Texts
    now: int


class Look(Hashable, Protocol):
    """One thing to look up; equal ones ask for the same.

    Attributes:
        rank: Looks of a lower rank are learned from before: 0 is what stands alone, 1 what belongs
            to a conversation, 2 rows in it by order, which may be named by what has rank 1.
    """

    rank: ClassVar[int]

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask, always as many statements."""

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered, absence too."""


class Miss(Exception):  # noqa: N818  no error: the step runs again
    """A step asked for something that is not known.

    Attributes:
        look: What has to be looked up before the step runs again.
    """

    def __init__(self, look: Look) -> None:
        super().__init__(type(look).__name__)
        self.look = look
