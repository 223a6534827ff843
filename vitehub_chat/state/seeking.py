"""Seeking: what a provider does for search over its stored messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import attrs

from vitehub_chat.errors import StateError
from vitehub_chat.model.folding import fold_text
from vitehub_chat.model.json_text import decode_json
from vitehub_chat.model.messages import fill_message
from vitehub_chat.state.records import RowRecord

MAX_SEARCH_TEXT: Final = 256 * 1024
"""How long a body may be to have its text kept for search; longer ones are read when searched."""

EARLIEST: Final = -(2**62)
LATEST: Final = 2**62
"""Times before and after all others, in microseconds."""


@attrs.frozen(kw_only=True)
class TextQuery:
    """Which rows are searched for; all conditions together. Times are microseconds since 1970.

    Attributes:
        sessions: The numbers of sessions, in the order in which their rows are wanted.
        words: Folded words, all of which must occur in the folded text; never none.
        role: Only rows of this role, or None.
        after: Only rows said at this time or later.
        before: Only rows said before this time.
        since: Rows said before this time are too old.
        spared_role: Rows of this role never are, or None.
        below: Of the first session only rows with a number below this one, or None.
        limit: At most so many.
        now: Rows that have expired by then are left out.
    """

    sessions: tuple[int, ...]
    words: tuple[str, ...]
    role: str | None = None
    after: int = EARLIEST
    before: int = LATEST
    since: int = EARLIEST
    spared_role: str | None = None
    below: int | None = None
    limit: int
    now: int

    def admits(self, row: RowRecord) -> bool:
        """Tell whether a row meets the conditions, those about sessions and text apart."""
        if row.expires_at is not None and row.expires_at <= self.now:
            return False
        if self.role is not None and row.role != self.role:
            return False
        said_at = row.recorded_at if row.created_at is None else row.created_at
        return (
            said_at >= self.since or row.role == self.spared_role
        ) and self.after <= said_at < self.before


@attrs.frozen
class Candidate:
    """A row that may be a hit, and whether its text is kept for search, and so was looked at."""

    row: RowRecord
    is_indexed: bool


class Seeker(Protocol):
    """Finds rows by their text.

    Texts are kept for search in the transaction of the rows. Rows of before that have none: each
    search that meets such rows has their texts kept.
    """

    async def find(self, query: TextQuery, /) -> Sequence[Candidate]:
        """Return rows in whose text all words occur, and those of which that is not known.

        By the order of their sessions, then the highest number first.
        """

    async def keep(self, rows: Sequence[RowRecord], /) -> int:
        """Keep the texts of rows that have none yet; one that has changed meanwhile is left.

        Returns:
            How many of them have a text that can be kept.
        """

    async def after(self, after: int, limit: int, /) -> Sequence[tuple[int, RowRecord]]:
        """Return rows of all conversations without a kept text, with their ids, by id."""


def search_text_of(row: RowRecord) -> str | None:
    """Return the folded text of a row to keep for search; None if it is too long for that.

    The text of a row that cannot be read is empty.
    """
    if len(row.body) > MAX_SEARCH_TEXT:
        return None
    text = folded_text_of(row)
    return text if len(text) <= MAX_SEARCH_TEXT else None


def folded_text_of(row: RowRecord) -> str:
    """Return the folded text of a row, of one that cannot be read an empty one."""
    try:
        parts = tuple(decode_json(row.body)["parts"])
        return fold_text(fill_message(None, row.role, parts, {}, None).text)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, StateError):
        return ""
