"""Recording: messages become rows of a session, with numbers and the session's clock moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import attrs

from vitehub_chat.errors import StateConflictError
from vitehub_chat.model.clock import in_us, to_epoch_us
from vitehub_chat.model.keys import fit_id
from vitehub_chat.model.policies import Retention
from vitehub_chat.state.codec import check_text, decode_row, encode_body, encode_extra
from vitehub_chat.state.records import EntryRecord, RowRecord, SessionRecord
from vitehub_chat.state.steps.reading import read_window
from vitehub_chat.state.steps.resolving import ref_of, resolve_session, store_session
from vitehub_chat.state.steps.visible import is_growing
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import NewRow, Recorded, SessionRequest, WindowRequest, WindowRows


@attrs.frozen(kw_only=True)
class Writing:
    """What rows are written with; times in microseconds."""

    now: int
    turn_id: str | None = None
    retention: Retention = None
    fence_key: str | None = None
    fence_token: int | None = None

    @property
    def expires_at(self) -> int | None:
        """When a row that is recorded now is gone."""
        keeps = self.retention
        return self.now + in_us(keeps) if isinstance(keeps, timedelta) else None


def record_turn(
    tx: Transaction,
    ticket_id: str,
    rows: Sequence[NewRow],
    session: SessionRequest | None,
    window: WindowRequest | None,
    writing: Writing,
    into: SessionRecord | None = None,
) -> Recorded:
    """Carry out `TurnStore.record`, in a session that is known or is to be resolved."""
    recorded = Recorded()
    session_key = None
    if session is not None:
        recorded = append_rows(tx, rows, session, window, writing, into)
        session_key = None if recorded.session is None else recorded.session.key
    for entry in tx.entries.of_run(ticket_id):
        tx.entries.update(
            attrs.evolve(entry, state="recorded", payload=None, session_key=session_key)
        )
    return recorded


def append_rows(
    tx: Transaction,
    rows: Sequence[NewRow],
    request: SessionRequest,
    window: WindowRequest | None,
    writing: Writing,
    into: SessionRecord | None = None,
) -> Recorded:
    """Store rows in the session that they belong to, and read the rows beside them."""
    session, is_new = (into, False) if into else resolve_session(tx, request, writing.now)
    if is_new:
        conversation = tx.conversations.ensure(request.conversation.encode())
        session = store_session(tx, session, conversation)
    interrupt_dead(tx, session.conversation_key, writing.now)
    session, records = write_rows(tx, session, rows, writing)
    read = WindowRows()
    if window is not None:
        own = window.besides | {record.message_id for record in records}
        wanted = attrs.evolve(window, besides=own)
        read = read_window(tx, session.conversation_key, session.key, wanted, writing.now)
    return Recorded(
        rows=tuple(decode_row(record) for record in records),
        session=ref_of(session, is_new=is_new),
        window=read,
    )


def write_rows(
    tx: Transaction, session: SessionRecord, rows: Sequence[NewRow], writing: Writing
) -> tuple[SessionRecord, list[RowRecord]]:
    """Insert rows behind all others, or in place of those of the same message id."""
    for row in rows:
        _check(row)
    key, now = session.conversation_key, writing.now
    ids = dict.fromkeys(row.message.id or "" for row in rows)
    known = {each: tx.rows.by_message(key, each, now) for each in ids}
    are_new = len(known) == len(rows) and not any(known.values())
    numbers = _take_numbers(tx, key, len(rows) if are_new else 1)
    records: list[RowRecord] = []
    inserted: list[RowRecord] = []
    for row in rows:
        stored = known[row.message.id or ""]
        comes_again = writing.turn_id is None or stored is None or _is_same(stored, row, session)
        if stored is not None and comes_again:
            record = attrs.evolve(stored, **_content_of(row, writing))
            tx.rows.replace(record)
        else:
            named = row if stored is None else _renamed(tx, session, row)
            turn_no = inserted[-1].turn_no if inserted else session.turn_count
            record = _new_record(session, named, next(numbers), turn_no, writing)
            tx.rows.insert(record)
            inserted.append(record)
        known[record.message_id] = record
        records.append(record)
    moved = _move(session, inserted, now)
    tx.sessions.update(moved)
    return moved, records


def _take_numbers(tx: Transaction, conversation_key: int, at_once: int) -> Iterator[int]:
    """Yield numbers of a conversation, so many of which are taken at once; none is given back."""
    while True:
        first = tx.conversations.allocate(conversation_key, at_once)
        yield from range(first, first + at_once)


def _check(row: NewRow) -> None:
    """Refuse a row with something else than text where text is stored.

    Raises:
        InputError: It has; the error names where.
    """
    check_text(row.message.id, "message.id")
    check_text(row.message.role, "message.role")
    check_text(row.author, "author")
    check_text(row.thread_id, "thread_id")


def _is_same(stored: RowRecord, row: NewRow, session: SessionRecord) -> bool:
    """Tell whether a row is the same message come again, not another one of the same id.

    A session that is used from several threads has their messages in one conversation, and clients
    name their messages as they like.
    """
    return (
        stored.role == row.message.role
        and stored.thread_id == row.thread_id
        and stored.session_key == session.key
    )


def _renamed(tx: Transaction, session: SessionRecord, row: NewRow) -> NewRow:
    """Return a row under an id of its own, where another message has the one it came with."""
    conversation = tx.conversations.get(session.conversation)
    number = 0 if conversation is None else conversation.last_seq + 1
    own = fit_id(f"{row.message.id}:{number}")
    return attrs.evolve(row, message=attrs.evolve(row.message, id=own))


def write_answer(
    tx: Transaction, entry: EntryRecord, answer: NewRow, writing: Writing
) -> RowRecord:
    """Write the answer of a run into the session that the run was recorded in.

    Raises:
        StateConflictError: The session was deleted meanwhile.
    """
    session = None if entry.session_key is None else tx.sessions.get(entry.session_key)
    if session is None:
        raise StateConflictError("the session of this turn was deleted")
    return write_rows(tx, session, [answer], writing)[1][0]


def interrupt_dead(tx: Transaction, conversation_key: int, now: int) -> None:
    """Let answers whose turn died count as interrupted from now on."""
    for row in tx.rows.pending(conversation_key):
        if not is_growing(tx, row, now):
            tx.rows.replace(
                attrs.evolve(row, status="interrupted", fence_key=None, fence_token=None)
            )


def _new_record(
    session: SessionRecord, row: NewRow, seq: int, turn_no: int, writing: Writing
) -> RowRecord:
    """Return the record of a row under a new number, behind a row of that turn."""
    created = row.message.created_at
    return RowRecord(
        conversation_key=session.conversation_key,
        seq=seq,
        session_key=session.key,
        session_id=session.session_id,
        message_id=row.message.id or "",
        created_at=None if created is None else to_epoch_us(created),
        recorded_at=writing.now,
        turn_no=turn_no + (row.message.role == "user"),
        thread_id=row.thread_id,
        author=row.author,
        expires_at=writing.expires_at,
        **_content_of(row, writing),
    )


def _move(session: SessionRecord, inserted: Sequence[RowRecord], now: int) -> SessionRecord:
    """Return a session with rows behind its own."""
    if not inserted:
        return session
    said_at = [now if row.created_at is None else min(row.created_at, now) for row in inserted]
    return attrs.evolve(
        session,
        last_message_at=max(session.last_message_at, *said_at),
        message_count=session.message_count + len(inserted),
        turn_count=inserted[-1].turn_no,
    )


def _content_of(row: NewRow, writing: Writing) -> dict[str, Any]:
    """Return what a row says, and who writes it; its number and times are not among it."""
    is_pending = row.status == "pending"
    return {
        "role": row.message.role,
        "status": row.status,
        "turn_id": writing.turn_id,
        "is_shown": row.is_shown,
        "body": encode_body(row.message),
        "extra": encode_extra(row),
        "fence_key": writing.fence_key if is_pending else None,
        "fence_token": writing.fence_token if is_pending else None,
    }
