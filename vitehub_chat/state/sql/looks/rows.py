"""Looking up rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import attrs

from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.sql.columns import AUTHORED, ROWS, as_values
from vitehub_chat.state.sql.coverage import EDGE, Span
from vitehub_chat.state.sql.driver import Statement, Value
from vitehub_chat.state.sql.known import Known
from vitehub_chat.state.sql.looks.look import Answers, Asking

_AT_ONCE = 500


@attrs.frozen
class MessagesLook:
    """The rows of some message ids in a conversation."""

    rank: ClassVar[int] = 1
    encoded: str
    message_ids: tuple[str, ...]

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        starts = range(0, len(self.message_ids), _AT_ONCE)
        return [self._ask(asking, self.message_ids[start : start + _AT_ONCE]) for start in starts]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered; the conversation was looked up before."""
        part = known.conversations[self.encoded]
        part.free_ids.update(set(self.message_ids) - part.seqs.keys())
        for row in ROWS.all(tuple(row) for rows in answers for row in rows):
            part.put_row(row)

    def _ask(self, asking: Asking, message_ids: Sequence[str]) -> Statement:
        values: dict[str, Value] = {f"id_{n}": each for n, each in enumerate(message_ids)}
        names = ", ".join(f":{name}" for name in values)
        text = asking.texts["loads.messages"].replace(":message_ids", names)
        return text, {**values, "encoded": self.encoded}


@attrs.frozen
class AnswerLook:
    """The row of the answer with which an entry ended."""

    rank: ClassVar[int] = 1
    ticket_id: str

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        return [(asking.texts["loads.answer_of_ticket"], attrs.asdict(self))]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered; its session was looked up before."""
        for row in ROWS.all(map(tuple, answers[0])):
            encoded = known.homes.get(row.session_key)
            if encoded is not None:
                known.conversations[encoded].put_row(row)


@attrs.frozen
class AuthoredLook:
    """Where messages of an author are, in all conversations."""

    rank: ClassVar[int] = 0
    author: str
    after: int
    limit: int

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        return [(asking.texts["rows.by_author"], attrs.asdict(self))]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        found = AUTHORED.all(map(tuple, answers[0]))
        known.authored[(self.author, self.after, self.limit)] = tuple(found)


@attrs.frozen(kw_only=True)
class RowsLook:
    """Some rows of a conversation in order.

    Attributes:
        session_key: Only of this session, None is all.
        session_by: Only of the newest session of a `base` in a scope, or of an `id` whose rows
            the conversation has; in place of its number.
        session_scope: That scope.
        session_name: That base or id.
        around: A message id in place of `above`, for rows that are `newer`, or of `below`.
        from_anchor: Only behind the anchor of that session, which was looked up before, in place
            of `above`.
    """

    rank: ClassVar[int] = 2
    encoded: str
    order: Literal["ascending", "descending"]
    limit: int
    session_key: int | None = None
    session_by: Literal["base", "id"] | None = None
    session_scope: str | None = None
    session_name: str | None = None
    is_shown: bool | None = None
    above: int = 0
    below: int = EDGE
    around: str | None = None
    from_anchor: bool = False

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        side = "newer" if self.order == "ascending" else "older"
        if self.from_anchor:
            side = "anchor"
        values: dict[str, Any] = {
            **attrs.asdict(self),
            "side": side if self.around is not None or self.from_anchor else None,
            "least_shown": self.is_shown is True,
            "now": asking.now,
        }
        return [(asking.texts.by_encoded[self._name()], as_values(values))]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered; the conversation and its session were looked up before."""
        part = known.conversations[self.encoded]
        rows = ROWS.all(map(tuple, answers[0]))
        for row in rows:
            part.put_row(row)
        span = self._span(known, rows)
        has_session = self.session_by is None and self.session_key is None
        session_key = None if has_session else self._session(known)
        if span is not None and (has_session or session_key is not None):
            part.coverage.add((session_key, self.is_shown), span)

    def _name(self) -> str:
        is_all = self.session_by is None and self.session_key is None
        scope = "conversation" if is_all else "session"
        return f"rows.{scope}{'_hidden' if self.is_shown is False else ''}_{self.order}"

    def _session(self, known: Known) -> int | None:
        if self.session_by == "base":
            return known.newest.get(("base", self.session_scope or "", self.session_name))
        if self.session_by == "id":
            return known.conversations[self.encoded].by_id.get(self.session_name)
        return self.session_key

    def _span(self, known: Known, rows: Sequence[RowRecord]) -> Span | None:
        """Return the numbers between which these are all rows."""
        above, below = self.above, self.below
        if self.from_anchor:
            anchor = self._last_condensed(known)
            if anchor is None:
                return None
            above = anchor
        if self.around is not None:
            middle = self._middle(known)
            if middle is None:
                return None
            above, below = (middle, below) if self.order == "ascending" else (above, middle)
        if len(rows) < self.limit:
            return Span(above, below)
        if not rows:
            return None
        if self.order == "ascending":
            return Span(above, rows[-1].seq + 1)
        return Span(rows[-1].seq - 1, below)

    def _last_condensed(self, known: Known) -> int | None:
        """Return the number behind which rows were looked up; None if that was not learned."""
        documents = known.conversations[self.encoded].newest_documents
        place = ("rolling", self._session(known) or 0)
        if place not in documents:
            return None
        document = documents[place]
        return 0 if document is None else document.number

    def _middle(self, known: Known) -> int | None:
        return known.conversations[self.encoded].seqs.get(self.around or "")
