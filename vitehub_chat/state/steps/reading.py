"""Reading: windows, pages and exports of stored rows."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.model.keys import ConversationKey, encode_key
from vitehub_chat.model.rows import HistoryPage, MessageRange, Row
from vitehub_chat.state.cursors import decode_cursor, encode_cursor
from vitehub_chat.state.records import ConversationRecord, RowRecord
from vitehub_chat.state.row_requests import AgeLimit, RangeRequest
from vitehub_chat.state.steps.anchors import readable_rolling, system_rows
from vitehub_chat.state.steps.scopes import Scope, find_message, find_scope, no_message
from vitehub_chat.state.steps.visible import (
    VisibleRows,
    decode,
    decode_readable,
    drop_old,
    is_growing,
)
from vitehub_chat.state.tables import RowQuery, Transaction
from vitehub_chat.state.values import PageRequest, RowBatch, SessionRef, WindowRequest, WindowRows


def read_window(
    tx: Transaction,
    conversation_key: int,
    session_key: int,
    window: WindowRequest,
    now: int,
) -> WindowRows:
    """Return the newest rows of a session that are shown, and those between them that are not."""
    rolling = readable_rolling(tx, session_key, now) if window.from_anchor else None
    query = RowQuery(
        conversation_key=conversation_key,
        session_key=None if window.whole_conversation else session_key,
        is_shown=True,
        above=None if rolling is None or rolling.anchor == 1 else rolling.anchor - 1,
        order="descending",
        now=now,
    )
    said, growing = _newest(tx, query, window)
    is_full = len(said) == window.limit
    between = attrs.evolve(
        query,
        is_shown=False,
        above=said[-1].seq if is_full and said else query.above,
        limit=max(window.limit, 1),
    )
    unseen = [*_not_brought(tx.rows.select(between), window), *growing]
    if rolling is not None:
        said.extend(reversed(_not_brought(system_rows(tx, query, rolling), window)))
    both = sorted([*said, *unseen], key=lambda row: row.seq)
    seen = {row.seq for row in said}
    young = drop_old(both, window.not_older_than)
    shown = decode_readable(tx, [row for row in young if row.seq in seen], now)
    others = decode_readable(tx, [row for row in young if row.seq not in seen], now)
    return WindowRows(
        shown=shown.rows,
        not_shown=others.rows,
        unreadable=(*shown.unreadable, *others.unreadable),
        rolling=rolling,
    )


def _newest(
    tx: Transaction, query: RowQuery, window: WindowRequest
) -> tuple[list[RowRecord], list[RowRecord]]:
    """Return the newest rows, the last first, and the answers of turns that run beside this one.

    These are not said yet, and take nobody's place.
    """
    now, limit = query.now, window.limit + len(window.besides)
    found = _not_brought(tx.rows.select(attrs.evolve(query, limit=limit)), window)
    growing = [row for row in found if is_growing(tx, row, now)]
    if growing:
        limit += _count_growing(tx, query, window)
        found = _not_brought(tx.rows.select(attrs.evolve(query, limit=limit)), window)
        growing = [row for row in found if is_growing(tx, row, now)]
    said = [row for row in found if row not in growing] if growing else found
    return said[: window.limit], growing


def _count_growing(tx: Transaction, query: RowQuery, window: WindowRequest) -> int:
    return sum(
        query.session_key in {None, row.session_key}
        and row.message_id not in window.besides
        and is_growing(tx, row, query.now)
        for row in tx.rows.pending(query.conversation_key)
    )


def _not_brought(rows: Sequence[RowRecord], window: WindowRequest) -> list[RowRecord]:
    return [row for row in rows if row.message_id not in window.besides]


def get_rows(
    tx: Transaction,
    key: ConversationKey,
    message_ids: Sequence[str],
    age: AgeLimit | None,
    now: int,
) -> tuple[Row, ...]:
    """Return the rows with some message ids, by number."""
    conversation = tx.conversations.get(key.encode())
    if conversation is None:
        return ()
    found = (tx.rows.by_message(conversation.key, each, now) for each in dict.fromkeys(message_ids))
    ordered = sorted((row for row in found if row is not None), key=lambda row: row.seq)
    return tuple(decode(tx, row, now) for row in drop_old(ordered, age))


def read_batch(
    tx: Transaction,
    key: ConversationKey,
    session_id: str | None,
    above: int,
    limit: int,
    age: AgeLimit | None,
    now: int,
) -> tuple[RowBatch, int | None]:
    """Return the next rows above a number, and the number to go on above; None at the end."""
    scope = find_scope(tx, key, session_id)
    if not scope.exists:
        return RowBatch(), None
    rows = VisibleRows(tx, scope.rows(now), age)
    records = rows.newer(above, limit)
    last = records[-1].seq if len(records) == limit else None
    return rows.decode(records), last


def read_range(
    tx: Transaction, key: ConversationKey, request: RangeRequest, now: int
) -> MessageRange:
    """Carry out `TranscriptStore.range`."""
    scope = find_scope(tx, key, request.session_id)
    rows = VisibleRows(tx, scope.rows(now), request.not_older_than)
    limit = request.limit
    if request.around is not None:
        return _range_of(rows, _around(rows, scope, request.around, limit), is_cut=False)
    if not scope.exists:
        return MessageRange(items=())
    if request.from_seq is None:
        end = None if request.to_seq is None else request.to_seq + 1
        found = rows.older(end, limit + 1)
        return _range_of(rows, found[-limit:], is_cut=len(found) > limit)
    found = rows.newer(request.from_seq - 1, limit + 1)
    found = [row for row in found if request.to_seq is None or row.seq <= request.to_seq]
    return _range_of(rows, found[:limit], is_cut=len(found) > limit)


def _around(rows: VisibleRows, scope: Scope, message_id: str, limit: int) -> list[RowRecord]:
    """Return the row of a message with those before and behind it.

    Raises:
        NotFoundError: There is none, or it is too old.
    """
    middle = find_message(rows.tx, scope, message_id, rows.base.now)
    if not drop_old([middle], rows.age):
        raise no_message()
    before = rows.older(middle.seq, limit // 2)
    after = rows.newer(middle.seq, limit - 1 - limit // 2) if limit > 1 else []
    return [*before, middle, *after]


def _range_of(rows: VisibleRows, records: list[RowRecord], *, is_cut: bool) -> MessageRange:
    batch = rows.decode(records)
    return MessageRange(items=batch.rows, truncated=is_cut, unreadable=batch.unreadable)


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
    found = find_scope(tx, key, request.session_id)
    home = found.encoded if request.include_superseded else None
    rows = VisibleRows(tx, found.rows(now), request.not_older_than, home)
    around = None
    if request.around is not None:
        around = _around(rows, found, request.around, request.limit)
    if found.conversation is None:
        return HistoryPage(
            items=(),
            older_cursor=None,
            newer_cursor=encode_cursor(tx.secret, scope, 0, 0),
            at_live_edge=True,
            generation=0,
        )
    pages = _Pages(tx, found.conversation, scope, request, rows)
    if around is not None:
        return pages.page(around, position=None)
    if asked is None:
        return pages.page(rows.older(None, request.limit), position=None)
    position, generation = asked
    if request.direction == "older":
        return pages.page(rows.older(position, request.limit), position=position)
    return pages.newer_page(position, generation)


@attrs.frozen
class _Pages:
    """Pages of one conversation, or of one of its sessions."""

    _tx: Transaction
    _conversation: ConversationRecord
    _scope: str
    _request: PageRequest
    _rows: VisibleRows

    def newer_page(self, position: int, generation: int) -> HistoryPage:
        is_old = generation != self._conversation.generation and position > 0
        if is_old and not self._rows.exists(above=position - 1, below=position + 1):
            return self._reset()
        return self.page(self._rows.newer(position, self._request.limit), position=position)

    def page(self, records: list[RowRecord], *, position: int | None) -> HistoryPage:
        """Build the page; without rows it stays at the position it was asked for."""
        if records:
            first, last = records[0].seq, records[-1].seq
        else:
            last = 0 if position is None else position
            if self._request.direction == "older" and position is not None:
                last = max(position - 1, 0)
            first = last + 1
        has_older = self._rows.exists(below=first)
        at_live_edge = not self._rows.exists(above=last)
        batch = self._rows.decode(records, self._cursor)
        return HistoryPage(
            items=batch.rows,
            unreadable=batch.unreadable,
            older_cursor=self._cursor(first) if has_older else None,
            newer_cursor=self._cursor(last),
            at_live_edge=at_live_edge,
            generation=self._conversation.generation,
            live_edge_seq=last if records and at_live_edge else self._live_edge(),
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
        newest = self._rows.older(None, 1)
        return newest[0].seq if newest else 0

    def _cursor(self, position: int) -> str:
        generation = self._conversation.generation
        return encode_cursor(self._tx.secret, self._scope, position, generation)
