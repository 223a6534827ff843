"""The table of stored messages as a step sees it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.state.records import AuthoredRow, RowRecord
from vitehub_chat.state.sql.coverage import EDGE, Span
from vitehub_chat.state.sql.known import ConversationPart
from vitehub_chat.state.sql.looks.locks import CountLook
from vitehub_chat.state.sql.looks.look import Miss
from vitehub_chat.state.sql.looks.rows import AuthoredLook, MessagesLook, RowsLook
from vitehub_chat.state.sql.scratch.work import Removal, Work
from vitehub_chat.state.tables import RowQuery


class ScratchRows:
    """Stored messages by conversation and number."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def by_message(self, conversation_key: int, message_id: str, now: int, /) -> RowRecord | None:
        """Return the row of a message id."""
        row = self._find(conversation_key, message_id)
        return None if row is None or _is_expired(row, now) else row

    def insert(self, row: RowRecord, /) -> None:
        """Insert a row under its number, in place of an expired one of the same message."""
        part = self._work.place_of(row.conversation_key)
        twin = self._find(row.conversation_key, row.message_id)
        if twin is not None:
            self._work.note(("row", part.encoded, twin.seq), twin)
            part.drop_row(twin)
        self._work.note(("row", part.encoded, row.seq), None)
        part.put_row(row)

    def replace(self, row: RowRecord, /) -> None:
        """Replace the row of that number."""
        part = self._work.place_of(row.conversation_key)
        if row.seq in part.rows:
            self._work.note(("row", part.encoded, row.seq), part.rows[row.seq])
            part.put_row(row)

    def select(self, query: RowQuery, /) -> Sequence[RowRecord]:
        """Return rows in the order asked for."""
        part = self._work.place_of(query.conversation_key)
        if query.limit <= 0 or query.session_key == 0:
            return ()
        wanted = Span(query.above or 0, EDGE if query.below is None else query.below)
        found = _matching(part, query, wanted)
        if query.order == "descending":
            found.reverse()
        for span in part.coverage.of((query.session_key, query.is_shown)):
            if _answers(span, wanted, query, found):
                return found[: query.limit]
        # Rows that this step changed may match no more: others then come in their place.
        changed = sum(place[:2] == ("row", part.encoded) for place in self._work.before)
        raise Miss(_look(part.encoded, query, wanted, query.limit + changed))

    def exists(self, query: RowQuery, /) -> bool:
        """Tell whether any row matches."""
        part = self._work.place_of(query.conversation_key)
        wanted = Span(query.above or 0, EDGE if query.below is None else query.below)
        if _matching(part, query, wanted):
            return True
        return bool(self.select(attrs.evolve(query, limit=1)))

    def pending(self, conversation_key: int, /) -> Sequence[RowRecord]:
        """Return the rows of status `pending`, by number."""
        part = self._work.conversation_of(conversation_key)
        found = [row for row in part.rows.values() if row.status == "pending"]
        return sorted(found, key=lambda row: row.seq)

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        """Delete the rows of a conversation, or of one of its sessions, and count them."""
        work = self._work
        part = work.conversation_of(conversation_key)
        count = work.known.counts.get(("rows", part.encoded, session_key))
        if count is None:
            raise Miss(CountLook("rows", part.encoded, session_key))
        if count:
            work.removals.append(Removal("rows", part.encoded, conversation_key, session_key))
        return count

    def remove(self, rows: Sequence[RowRecord], /) -> None:
        """Delete these rows."""
        for row in rows:
            part = self._work.place_of(row.conversation_key)
            self._work.note(("row", part.encoded, row.seq), part.rows[row.seq])
            self._work.freed_messages.add((row.conversation_key, row.message_id))
            part.drop_row(row)

    def by_author(self, author: str, after: int, limit: int, /) -> Sequence[AuthoredRow]:
        """Return rows of an author in all conversations, by their ids."""
        found = self._work.known.authored.get((author, after, limit))
        if found is None:
            raise Miss(AuthoredLook(author, after, limit))
        return found

    def _find(self, conversation_key: int, message_id: str) -> RowRecord | None:
        """Return the row of a message id, also one that has expired."""
        work = self._work
        part = work.place_of(conversation_key)
        row = part.row_of(message_id)
        if row is not None or (conversation_key, message_id) in work.freed_messages:
            return row
        is_all_known = any(span == Span(0, EDGE) for span in part.coverage.of((None, None)))
        if message_id not in part.free_ids and not is_all_known:
            work.assumed.append(MessagesLook(part.encoded, (message_id,)))
            part.free_ids.add(message_id)
        work.free_messages[(conversation_key, message_id)] = part.encoded
        return None


def _is_expired(row: RowRecord, now: int) -> bool:
    return row.expires_at is not None and row.expires_at <= now


def _matching(part: ConversationPart, query: RowQuery, wanted: Span) -> list[RowRecord]:
    """Return the known rows that match, ascending."""
    found = [
        row
        for seq, row in part.rows.items()
        if wanted.above < seq < wanted.below
        and query.session_key in {None, row.session_key}
        and query.is_shown in {None, row.is_shown}
        and not _is_expired(row, query.now)
    ]
    return sorted(found, key=lambda row: row.seq)


def _answers(span: Span, wanted: Span, query: RowQuery, found: Sequence[RowRecord]) -> bool:
    """Tell whether the first rows found are the first ones there are."""
    if span.above <= wanted.above and span.below >= wanted.below:
        return True
    if len(found) < query.limit:
        return False
    last = found[query.limit - 1].seq
    if query.order == "descending":
        return span.below >= wanted.below and span.above < last
    return span.above <= wanted.above and span.below > last


def _look(encoded: str, query: RowQuery, wanted: Span, limit: int) -> RowsLook:
    return RowsLook(
        encoded=encoded,
        order=query.order,
        limit=limit,
        session_key=query.session_key,
        is_shown=query.is_shown,
        above=wanted.above,
        below=wanted.below,
    )
