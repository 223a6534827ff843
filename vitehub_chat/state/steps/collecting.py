"""Collecting: everything that is stored of a person, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from vitehub_chat.errors import StateError
from vitehub_chat.model.clock import from_epoch_us
from vitehub_chat.model.json_text import JsonObject, decode_json
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import format_time
from vitehub_chat.model.rows import Row
from vitehub_chat.state.contract_admin import PersonRecord
from vitehub_chat.state.records import (
    DocumentKind,
    DocumentRecord,
    EntryRecord,
    RowRecord,
    SessionRecord,
)
from vitehub_chat.state.steps.scopes import scope_of
from vitehub_chat.state.steps.visible import VisibleRows, decode
from vitehub_chat.state.tables import DocumentQuery, Transaction

ROWS_AT_ONCE: Final = 200

_KINDS: Final[Sequence[DocumentKind]] = ("plan", "rolling", "checkpoints", "hidden", "superseded")
_ALL: Final = 1 << 20


@attrs.frozen(kw_only=True)
class Collected:
    """Some of what is stored of a session.

    Attributes:
        messages: The ids of the messages among it.
        next: The number to go on above, or None at the end.
    """

    records: tuple[PersonRecord, ...]
    messages: tuple[str, ...]
    next: int | None


def collect(tx: Transaction, session: SessionRecord, above: int, now: int) -> Collected:
    """Collect the rows of a session above a number, and the documents up to the last of them.

    With the first ones comes what has no number.
    """
    rows = VisibleRows(tx, scope_of(tx, session).rows(now))
    found = rows.newer(above, ROWS_AT_ONCE)
    last = found[-1].seq if len(found) == ROWS_AT_ONCE else None
    around = _around(tx, session) if above == 0 else ()
    return Collected(
        records=(
            *around,
            *_documents_of(tx, session, above, last, now),
            *_records_of(tx, session.conversation, found, now),
        ),
        messages=tuple(row.message_id for row in found),
        next=last,
    )


def collect_messages(
    tx: Transaction, key: ConversationKey, message_ids: Iterable[str], now: int
) -> tuple[PersonRecord, ...]:
    """Collect messages by their ids."""
    conversation = tx.conversations.get(key.encode())
    if conversation is None:
        return ()
    found = (tx.rows.by_message(conversation.key, each, now) for each in message_ids)
    return tuple(_records_of(tx, key.encode(), [row for row in found if row is not None], now))


def record_of_document(document: DocumentRecord) -> PersonRecord:
    """Return a document as a record."""
    fields = {
        "conversation": _place(document.home),
        "kind": document.kind,
        "name": document.name,
        "body": _value(document.body),
    }
    return PersonRecord(kind="document", fields=fields)


def record_of_entry(entry: EntryRecord) -> PersonRecord:
    """Return a message that waits as a record."""
    fields = {
        "conversation": _place(entry.conversation),
        "state": entry.state,
        "payload": None if entry.payload is None else _value(entry.payload),
    }
    return PersonRecord(kind="entry", fields=fields)


def _around(tx: Transaction, session: SessionRecord) -> Iterator[PersonRecord]:
    yield _record_of_session(session)
    summary = tx.summaries.get(session.conversation_key, session.key)
    if summary is not None:
        fields = {
            "conversation": _place(session.conversation),
            "session_id": session.session_id,
            "text": summary.text,
            "created_at": format_time(from_epoch_us(summary.created_at)),
        }
        yield PersonRecord(kind="summary", fields=fields)
    for entry in tx.entries.open_of_session(session.key):
        yield record_of_entry(entry)


def _documents_of(
    tx: Transaction, session: SessionRecord, above: int, last: int | None, now: int
) -> Iterator[PersonRecord]:
    """Yield the documents numbered above one row up to another; the first also at 0."""
    for kind in _KINDS:
        query = DocumentQuery(
            home=session.conversation,
            kind=kind,
            session_key=session.key,
            above=above or None,
            below=None if last is None else last + 1,
            limit=_ALL,
            now=now,
        )
        yield from map(record_of_document, tx.documents.numbered(query))


def _record_of_session(session: SessionRecord) -> PersonRecord:
    fields = {
        "conversation": _place(session.conversation),
        "session_id": session.session_id,
        "id": session.chat_id,
        "title": session.title,
        "user_key": session.user_key,
        "started_at": format_time(from_epoch_us(session.started_at)),
        "last_message_at": format_time(from_epoch_us(session.last_message_at)),
        "message_count": session.message_count,
    }
    return PersonRecord(kind="session", fields=fields)


def _records_of(
    tx: Transaction, encoded: str, rows: Sequence[RowRecord], now: int
) -> Iterator[PersonRecord]:
    for record in rows:
        try:
            row = decode(tx, record, now)
        except StateError:
            fields: JsonObject = {"seq": record.seq, "unreadable": record.body}
        else:
            fields = _row_to_json(row)
        yield PersonRecord(kind="message", fields={"conversation": _place(encoded), **fields})


def _row_to_json(row: Row) -> JsonObject:
    return {
        "message": row.message.to_json(),
        "seq": row.seq,
        "status": row.status,
        "session_id": row.session_id,
        "author": row.author,
        "turn_no": row.turn_no,
        "recorded_at": format_time(row.recorded_at),
        "usage": row.usage,
        "native": row.native,
    }


def _place(encoded: str) -> JsonObject:
    return attrs.asdict(ConversationKey.decode(encoded))


def _value(text: str) -> object:
    try:
        return decode_json(text)
    except (ValueError, RecursionError):
        return text
