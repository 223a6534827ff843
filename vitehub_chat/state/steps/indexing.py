"""Indexing: one light row per user message, to find one's way in a long conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from vitehub_chat.errors import StateError
from vitehub_chat.model.keys import ConversationKey, encode_key
from vitehub_chat.model.rows import Row, TurnItem, TurnPage
from vitehub_chat.state.cursors import decode_cursor, encode_cursor
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.row_requests import TurnsRequest
from vitehub_chat.state.steps.scopes import find_scope
from vitehub_chat.state.steps.visible import VisibleRows, decode
from vitehub_chat.state.tables import Transaction

PREVIEW_LENGTH: Final = 80


def read_turns(tx: Transaction, key: ConversationKey, request: TurnsRequest, now: int) -> TurnPage:
    """Carry out `TranscriptStore.turns`."""
    name = turns_scope(key, request.session_id)
    position = 0
    if request.cursor is not None:
        position, _ = decode_cursor(tx.secret, name, request.cursor)
    scope = find_scope(tx, key, request.session_id)
    if not scope.exists:
        return TurnPage(items=())
    rows = VisibleRows(tx, scope.rows(now), request.not_older_than)
    index = _Index(tx, now)
    for row in _ascending(rows, position):
        if row.role == "user" and len(index.items) == request.limit:
            following = encode_cursor(tx.secret, name, index.items[-1].seq, scope.generation)
            return index.page(following)
        index.add(row)
    return index.page(None)


def turns_scope(key: ConversationKey, session_id: str | None) -> str:
    """Return what the cursors of an index belong to."""
    return encode_key("turns", key.encode(), session_id)


@attrs.define
class _Index:
    """The user messages that were read so far, and which of them were answered."""

    _tx: Transaction
    _now: int
    items: list[TurnItem] = attrs.field(factory=list)
    _unreadable: list[int] = attrs.field(factory=list)
    _turns: list[str | None] = attrs.field(factory=list)
    _answered: set[str] = attrs.field(factory=set)

    def add(self, row: RowRecord) -> None:
        if row.role == "user":
            self._add_turn(row)
        elif row.role == "assistant" and self.items and (row.is_shown or row.status == "pending"):
            if row.turn_id is not None:
                self._answered.add(row.turn_id)
            self.items[-1] = attrs.evolve(self.items[-1], has_reply=True)

    def page(self, next_cursor: str | None) -> TurnPage:
        items = (
            attrs.evolve(item, has_reply=item.has_reply or turn in self._answered)
            for item, turn in zip(self.items, self._turns, strict=True)
        )
        return TurnPage(
            items=tuple(items), next_cursor=next_cursor, unreadable=tuple(self._unreadable)
        )

    def _add_turn(self, row: RowRecord) -> None:
        try:
            self.items.append(_item_of(decode(self._tx, row, self._now)))
            self._turns.append(row.turn_id)
        except StateError:
            self._unreadable.append(row.seq)


def _item_of(row: Row) -> TurnItem:
    return TurnItem(
        turn_no=row.turn_no,
        message_id=row.message.id or "",
        seq=row.seq,
        preview=" ".join(row.message.text.split())[:PREVIEW_LENGTH],
        created_at=row.said_at,
        has_reply=False,
    )


def _ascending(rows: VisibleRows, above: int) -> Iterator[RowRecord]:
    for each in rows.slices(above):
        yield from each
