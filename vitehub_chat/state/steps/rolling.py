"""Rolling: the summary that replaces the oldest messages of a session, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

import attrs

from vitehub_chat.model.clock import from_epoch_us
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rolling import Checkpoint, PendingFlush, Rolling, RollingWrite
from vitehub_chat.state.document_codec import (
    decode_checkpoints,
    encode_checkpoints,
    encode_rolling,
)
from vitehub_chat.state.records import DocumentKind, DocumentRecord, SessionRecord
from vitehub_chat.state.steps.anchors import rolling_of
from vitehub_chat.state.steps.recording import Writing
from vitehub_chat.state.steps.scopes import find_session
from vitehub_chat.state.tables import Transaction

THINNED: Final = 8
"""Of the checkpoints that are not among the newest, those stay whose version this divides."""


@attrs.frozen(kw_only=True)
class Roll:
    """A new summary: everything before `anchor` is in it but the system messages."""

    summary: str
    anchor: int
    model: str | None
    checkpoints_kept: int
    system_seqs: tuple[int, ...] = ()


def get_rolling(
    tx: Transaction, key: ConversationKey, session_id: str | None, now: int
) -> Rolling | None:
    """Carry out `SummaryStore.get_rolling`."""
    session = find_session(tx, key, session_id)
    return None if session is None else rolling_of(tx, session, now)


def get_checkpoints(
    tx: Transaction, key: ConversationKey, session_id: str | None, now: int
) -> tuple[Checkpoint, ...]:
    """Carry out `SummaryStore.get_checkpoints`."""
    session = find_session(tx, key, session_id)
    return () if session is None else _checkpoints_of(tx, session, now)


def commit_roll(
    tx: Transaction,
    key: ConversationKey,
    session_id: str | None,
    since: Rolling,
    roll: Roll,
    writing: Writing,
) -> RollingWrite:
    """Carry out `SummaryStore.commit_roll`."""

    def change(session: SessionRecord, now: Rolling) -> Rolling:
        made_at = from_epoch_us(writing.now)
        checkpoint = Checkpoint(
            through_seq=roll.anchor - 1,
            summary=roll.summary,
            version=now.version + 1,
            created_at=made_at,
            model=roll.model,
        )
        kept = _thin((*_checkpoints_of(tx, session, writing.now), checkpoint), roll)
        _put_checkpoints(tx, session, kept, writing)
        return attrs.evolve(
            now,
            version=now.version + 1,
            summary=roll.summary,
            anchor=roll.anchor,
            system_seqs=roll.system_seqs,
            model=roll.model,
            created_at=made_at,
            pending=None,
            fail_count=0,
            last_error=None,
        )

    return _change(tx, key, session_id, since, change, writing)


def set_pending(
    tx: Transaction,
    key: ConversationKey,
    session_id: str | None,
    since: Rolling,
    pending: PendingFlush | None,
    writing: Writing,
) -> RollingWrite:
    """Carry out `SummaryStore.set_pending`."""
    return _change(
        tx, key, session_id, since, lambda _, now: attrs.evolve(now, pending=pending), writing
    )


def note_failure(
    tx: Transaction,
    key: ConversationKey,
    session_id: str | None,
    since: Rolling,
    error: str,
    writing: Writing,
) -> RollingWrite:
    """Carry out `SummaryStore.note_failure`."""

    def change(_: SessionRecord, now: Rolling) -> Rolling:
        return attrs.evolve(now, fail_count=now.fail_count + 1, last_error=error)

    return _change(tx, key, session_id, since, change, writing)


def set_correction(
    tx: Transaction,
    key: ConversationKey,
    session_id: str | None,
    since: Rolling,
    correction: float,
    writing: Writing,
) -> RollingWrite:
    """Carry out `SummaryStore.set_correction`."""
    return _change(
        tx, key, session_id, since, lambda _, now: attrs.evolve(now, correction=correction), writing
    )


def restore_below(
    tx: Transaction, session: SessionRecord, seq: int, writing: Writing
) -> Literal["kept", "restored", "reset"]:
    """Go back to a summary that covers nothing from `seq` on; for steps that take rows away.

    A summary that ends before `seq` is kept. Else the newest checkpoint that does is restored, and
    later ones are erased; without one the session has no summary any more. A batch that reached
    `seq` is not pending any more.
    """
    rolling = rolling_of(tx, session, writing.now)
    pending = rolling.pending
    if pending is not None and pending.to_seq >= seq:
        pending = None
    if seq >= rolling.anchor:
        if pending != rolling.pending:
            _put_rolling(tx, session, attrs.evolve(rolling, pending=pending), writing)
        return "kept"
    checkpoints = _checkpoints_of(tx, session, writing.now)
    kept = tuple(each for each in checkpoints if each.through_seq < seq)
    last = kept[-1] if kept else None
    anchor = 1 if last is None else last.through_seq + 1
    restored = attrs.evolve(
        rolling,
        version=rolling.version + 1,
        summary="" if last is None else last.summary,
        anchor=anchor,
        system_seqs=tuple(each for each in rolling.system_seqs if each < anchor),
        model=None if last is None else last.model,
        created_at=None if last is None else last.created_at,
        pending=pending,
    )
    _put_rolling(tx, session, restored, writing)
    _put_checkpoints(tx, session, kept, writing)
    return "reset" if last is None else "restored"


def _change(
    tx: Transaction,
    key: ConversationKey,
    session_id: str | None,
    since: Rolling,
    change: Callable[[SessionRecord, Rolling], Rolling],
    writing: Writing,
) -> RollingWrite:
    """Write a change unless the state is another one than `since`."""
    session = find_session(tx, key, session_id)
    if session is None:
        return RollingWrite("session_changed", None)
    now = rolling_of(tx, session, writing.now)
    if (now.session_key, now.generation) != (since.session_key, since.generation):
        return RollingWrite("session_changed", now)
    if now.version != since.version:
        return RollingWrite("conflict", now)
    changed = change(session, now)
    _put_rolling(tx, session, changed, writing)
    return RollingWrite(None, changed)


def _checkpoints_of(tx: Transaction, session: SessionRecord, now: int) -> tuple[Checkpoint, ...]:
    found = tx.documents.newest(session.conversation, "checkpoints", session.key, now)
    return decode_checkpoints(found)


def _thin(checkpoints: Sequence[Checkpoint], roll: Roll) -> Sequence[Checkpoint]:
    """Return the newest checkpoints, and of the older ones some."""
    older = checkpoints[: -roll.checkpoints_kept]
    newest = checkpoints[-roll.checkpoints_kept :]
    return (*(each for each in older if each.version % THINNED == 0), *newest)


def _put_rolling(
    tx: Transaction, session: SessionRecord, rolling: Rolling, writing: Writing
) -> None:
    # Its number is the last one that is condensed, for stores that look behind it at once.
    _put(tx, session, "rolling", encode_rolling(rolling), writing, rolling.anchor - 1)


def _put_checkpoints(
    tx: Transaction, session: SessionRecord, checkpoints: Sequence[Checkpoint], writing: Writing
) -> None:
    _put(tx, session, "checkpoints", encode_checkpoints(checkpoints), writing)


def _put(
    tx: Transaction,
    session: SessionRecord,
    kind: DocumentKind,
    body: str,
    writing: Writing,
    number: int = 0,
) -> None:
    tx.documents.put(
        DocumentRecord(
            home=session.conversation,
            kind=kind,
            name=str(session.key),
            session_key=session.key,
            number=number,
            body=body,
            created_at=writing.now,
            expires_at=writing.expires_at,
        )
    )
