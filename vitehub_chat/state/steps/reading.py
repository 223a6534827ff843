"""Reading: windows, pages and exports of stored rows."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.errors import NotFoundError, StateError
from vitehub_chat.model.keys import ConversationKey, encode_key
from vitehub_chat.model.rows import HistoryPage, Row
from vitehub_chat.state.codec import decode_row
from vitehub_chat.state.cursors import decode_cursor, encode_cursor
from vitehub_chat.state.records import ConversationRecord, RowRecord
from vitehub_chat.state.steps.granting import live_lock
from vitehub_chat.state.tables import RowQuery, Transaction
from vitehub_chat.state.values import (
    PageRequest,
    RowBatch,
    SessionRef,
    WindowRequest,
    WindowRows,
)


def read_window(
    tx: Transaction,
    conversation_key: int,
    session_key: int,
    window: WindowRequest,
    now: int,
) -> WindowRows:
    """Return the newest rows of a session that are shown, and those between them that are not."""
    query = RowQuery(
        conversation_key=conversation_key,
        session_key=None if window.whole_conversation else session_key,
        is_shown=True,
        order="descending",
        limit=window.limit + len(window.besides),
        now=now,
    )
    shown = [row for row in tx.rows.select(query) if row.message_id not in window.besides]
    shown = shown[: window.limit]
    is_full = len(shown) == window.limit
    between = attrs.evolve(
        query,
        is_shown=False,
        above=shown[-1].seq if is_full and shown else None,
        limit=max(window.limit, 1),
    )
    hidden = [row for row in tx.rows.select(between) if row.message_id not in window.besides]
    readable = _decode_readable(tx, reversed_rows(shown), now)
    left_out = _decode_readable(tx, reversed_rows(hidden), now)
    # The answer of a turn that runs beside this one is not said yet.
    growing = tuple(row for row in readable.rows if row.status == "pending")
    return WindowRows(
        shown=tuple(row for row in readable.rows if row.status != "pending"),
        not_shown=(*left_out.rows, *growing),
        unreadable=(*readable.unreadable, *left_out.unreadable),
    )


def reversed_rows(rows: Sequence[RowRecord]) -> list[RowRecord]:
    """Return rows in the opposite order."""
    return list(reversed(rows))


def get_rows(
    tx: Transaction, key: ConversationKey, message_ids: Sequence[str], now: int
) -> tuple[Row, ...]:
    """Return the rows with some message ids, by number."""
    conversation = tx.conversations.get(key.encode())
    if conversation is None:
        return ()
    found = (tx.rows.by_message(conversation.key, each, now) for each in dict.fromkeys(message_ids))
    ordered = sorted((row for row in found if row is not None), key=lambda row: row.seq)
    return tuple(_decode(tx, row, now) for row in ordered)


def read_batch(
    tx: Transaction,
    key: ConversationKey,
    session_id: str | None,
    above: int,
    limit: int,
    now: int,
) -> tuple[RowBatch, int | None]:
    """Return the next rows above a number, and the number to go on above; None at the end."""
    conversation = tx.conversations.get(key.encode())
    if conversation is None:
        return RowBatch(), None
    query = RowQuery(
        conversation_key=conversation.key,
        session_key=_narrowed(tx, conversation, session_id),
        above=above,
        limit=limit,
        now=now,
    )
    records = tx.rows.select(query)
    last = records[-1].seq if len(records) == limit else None
    return _decode_readable(tx, records, now), last


def window_of(
    tx: Transaction,
    key: ConversationKey,
    session: SessionRef | None,
    window: WindowRequest,
    now: int,
) -> WindowRows:
    """Carry out `TranscriptStore.window`."""
    if session is not None and not window.whole_conversation:
        record = tx.sessions.get(session.key)
        if record is None:
            return WindowRows()
        return read_window(tx, record.conversation_key, record.key, window, now)
    conversation = tx.conversations.get(key.encode())
    if conversation is None:
        return WindowRows()
    unnamed = tx.sessions.of_conversation(conversation.key, None)
    if unnamed is None and not window.whole_conversation:
        return WindowRows()
    return read_window(tx, conversation.key, 0 if unnamed is None else unnamed.key, window, now)


def read_page(tx: Transaction, key: ConversationKey, request: PageRequest, now: int) -> HistoryPage:
    """Carry out `TranscriptStore.page`."""
    scope = encode_key(key.encode(), request.session_id)
    asked = None if request.cursor is None else decode_cursor(tx.secret, scope, request.cursor)
    conversation = tx.conversations.get(key.encode())
    if conversation is None:
        if request.around is not None:
            raise NotFoundError("no message of that id in this conversation")
        return HistoryPage(
            items=(),
            older_cursor=None,
            newer_cursor=encode_cursor(tx.secret, scope, 0, 0),
            at_live_edge=True,
            generation=0,
        )
    pages = _Pages(tx, conversation, scope, request, now)
    if request.around is not None:
        return pages.around(request.around)
    if asked is None:
        return pages.page(pages.older(None, request.limit), position=None)
    position, generation = asked
    if request.direction == "older":
        return pages.page(pages.older(position, request.limit), position=position)
    return pages.newer_page(position, generation)


class _Pages:
    """Pages of one conversation, or of one of its sessions."""

    def __init__(
        self,
        tx: Transaction,
        conversation: ConversationRecord,
        scope: str,
        request: PageRequest,
        now: int,
    ) -> None:
        self._tx = tx
        self._conversation = conversation
        self._scope = scope
        self._request = request
        self._now = now
        self._all = RowQuery(
            conversation_key=conversation.key,
            session_key=_narrowed(tx, conversation, request.session_id),
            now=now,
        )

    def older(self, position: int | None, limit: int) -> list[RowRecord]:
        query = attrs.evolve(self._all, below=position, order="descending", limit=limit)
        return reversed_rows(self._tx.rows.select(query))

    def newer(self, position: int, limit: int) -> list[RowRecord]:
        return list(self._tx.rows.select(attrs.evolve(self._all, above=position, limit=limit)))

    def around(self, message_id: str) -> HistoryPage:
        found = self._tx.rows.by_message(self._conversation.key, message_id, self._now)
        session_key = self._all.session_key
        if found is None or (session_key is not None and found.session_key != session_key):
            raise NotFoundError("no message of that id in this conversation")
        limit = self._request.limit
        before = self.older(found.seq, limit // 2)
        after = self.newer(found.seq, limit - 1 - limit // 2) if limit > 1 else []
        return self.page([*before, found, *after], position=None)

    def newer_page(self, position: int, generation: int) -> HistoryPage:
        if generation != self._conversation.generation and position > 0:
            at = attrs.evolve(self._all, above=position - 1, below=position + 1)
            if not self._tx.rows.exists(at):
                return self._reset()
        return self.page(self.newer(position, self._request.limit), position=position)

    def page(self, records: list[RowRecord], *, position: int | None) -> HistoryPage:
        """Build the page; without rows it stays at the position it was asked for."""
        if records:
            first, last = records[0].seq, records[-1].seq
        else:
            last = 0 if position is None else position
            if self._request.direction == "older" and position is not None:
                last = max(position - 1, 0)
            first = last + 1
        has_older = self._tx.rows.exists(attrs.evolve(self._all, below=first))
        batch = _decode_readable(self._tx, records, self._now)
        return HistoryPage(
            items=tuple(attrs.evolve(row, cursor=self._cursor(row.seq)) for row in batch.rows),
            unreadable=batch.unreadable,
            older_cursor=self._cursor(first) if has_older else None,
            newer_cursor=self._cursor(last),
            at_live_edge=not self._tx.rows.exists(attrs.evolve(self._all, above=last)),
            generation=self._conversation.generation,
            live_edge_seq=self._live_edge(),
        )

    def _reset(self) -> HistoryPage:
        edge = self._live_edge()
        return HistoryPage(
            items=(),
            older_cursor=None,
            newer_cursor=self._cursor(edge),
            at_live_edge=True,
            generation=self._conversation.generation,
            reset=True,
            live_edge_seq=edge,
        )

    def _live_edge(self) -> int:
        newest = self.older(None, 1)
        return newest[0].seq if newest else 0

    def _cursor(self, position: int) -> str:
        generation = self._conversation.generation
        return encode_cursor(self._tx.secret, self._scope, position, generation)


def _narrowed(
    tx: Transaction, conversation: ConversationRecord, session_id: str | None
) -> int | None:
    """Return the session to narrow to; an unknown one has no rows."""
    if session_id is None:
        return None
    session = tx.sessions.of_conversation(conversation.key, session_id)
    return 0 if session is None else session.key


def _decode_readable(tx: Transaction, records: Sequence[RowRecord], now: int) -> RowBatch:
    """Decode rows and name those that cannot be read; a direct read of one raises."""
    rows: list[Row] = []
    unreadable: list[int] = []
    for record in records:
        try:
            rows.append(_decode(tx, record, now))
        except StateError:
            unreadable.append(record.seq)
    return RowBatch(rows=tuple(rows), unreadable=tuple(unreadable))


def _decode(tx: Transaction, record: RowRecord, now: int) -> Row:
    """Decode a row; an answer whose turn died counts as interrupted."""
    if record.status == "pending":
        lock = None if record.fence_key is None else live_lock(tx, record.fence_key, now)
        if lock is None or lock.token != record.fence_token:
            record = attrs.evolve(record, status="interrupted")
    return decode_row(record)
