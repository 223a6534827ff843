"""Removing: rows leave the history in whole units, with everything that depends on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import attrs

from vitehub_chat.errors import ChatBusyError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.units import find_unbound, split_units
from vitehub_chat.state.records import RowRecord, SessionRecord
from vitehub_chat.state.steps.aside import put_aside
from vitehub_chat.state.steps.recording import Writing
from vitehub_chat.state.steps.rolling import restore_below
from vitehub_chat.state.steps.scopes import Scope, find_message, find_scope, sessions_in
from vitehub_chat.state.steps.visible import (
    FIRST_SLICE,
    VisibleRows,
    is_growing,
    message_of,
)
from vitehub_chat.state.tables import Transaction

Verdict = Literal["kept", "restored", "reset"]
"""What can become of a rolled summary."""

_MILDEST_FIRST: Final[Sequence[Verdict]] = ("kept", "restored", "reset")


def delete_message(
    tx: Transaction,
    key: ConversationKey,
    session_id: str | None,
    message_id: str,
    writing: Writing,
) -> int:
    """Carry out `TranscriptStore.delete`."""
    scope = find_scope(tx, key, session_id)
    found = find_message(tx, scope, message_id, writing.now)
    records, start, stop = unit_at(VisibleRows(tx, scope.rows(writing.now)), found.seq)
    unit = records[start:stop]
    if any(is_growing(tx, row, writing.now) for row in unit):
        raise ChatBusyError("the answer is still being written", code="turn_in_progress")
    take_out(tx, scope, unit, writing)
    return len(unit)


def unit_at(rows: VisibleRows, seq: int) -> tuple[list[RowRecord], int, int]:
    """Return rows from before a number to the end, and where the unit of the first from it is.

    The unit is empty if there is no row from that number on.
    """
    records = [row for each in rows.slices(seq - 1) for row in each]
    first = records[0].seq if records else 0
    messages = [message_of(row) for row in records]
    size = FIRST_SLICE
    while records:
        at = next(index for index, row in enumerate(records) if row.seq == first)
        unit = next(each for each in split_units(messages) if at in each)
        unbound = find_unbound(messages)
        if unbound is None or unbound < unit.start:
            return records, unit.start, unit.stop
        # A result from here on answers a call before: the unit begins with that.
        more = rows.older(records[0].seq, size)
        if not more:
            return records, unit.start, unit.stop
        records, messages = [*more, *records], [*map(message_of, more), *messages]
        size *= 4
    return [], 0, 0


def take_out(
    tx: Transaction,
    scope: Scope,
    rows: Sequence[RowRecord],
    writing: Writing,
    *,
    raises_generation: bool = False,
    erases: bool = False,
) -> Verdict:
    """Take rows out of the history; return what became of the rolled summary.

    With the retention `forever` they are put aside as superseded, unless they are erased. The
    claims of their turns go, so that a message whose answer is gone may be sent again, too.
    """
    _release_claims(tx, [*_question_of(tx, scope, rows, writing.now), *rows])
    if writing.retention == "forever" and not erases:
        put_aside(tx, scope.encoded, rows, "superseded", writing.now)
    else:
        tx.rows.remove(rows)
    verdicts: list[Verdict] = ["kept"]
    for session, gone in _by_session(tx, scope, rows):
        changed = _count_down(session, gone)
        if raises_generation:
            turns = [row.turn_no for row in gone if row.role == "user"]
            changed = attrs.evolve(
                changed,
                turn_count=min([*(turn - 1 for turn in turns), session.turn_count]),
                generation=session.generation + 1,
            )
        tx.sessions.update(changed)
        verdicts.append(restore_below(tx, changed, gone[0].seq, writing))
    return max(verdicts, key=_MILDEST_FIRST.index)


def forget_rows(tx: Transaction, scope: Scope, rows: Sequence[RowRecord]) -> None:
    """Count the sessions of rows down that have left them."""
    for session, gone in _by_session(tx, scope, rows):
        tx.sessions.update(_count_down(session, gone))


def _by_session(
    tx: Transaction, scope: Scope, rows: Sequence[RowRecord]
) -> list[tuple[SessionRecord, list[RowRecord]]]:
    gone: dict[int, list[RowRecord]] = {}
    for row in rows:
        gone.setdefault(row.session_key, []).append(row)
    return [(each, gone[each.key]) for each in sessions_in(tx, scope) if each.key in gone]


def _count_down(session: SessionRecord, gone: Sequence[RowRecord]) -> SessionRecord:
    return attrs.evolve(session, message_count=max(session.message_count - len(gone), 0))


def _question_of(
    tx: Transaction, scope: Scope, rows: Sequence[RowRecord], now: int
) -> Sequence[RowRecord]:
    """Return what the first of some rows answers; an answer that went on has a later turn."""
    if not rows or rows[0].role != "assistant":
        return ()
    before = VisibleRows(tx, scope.rows(now)).older(rows[0].seq, 1)
    return [row for row in before if row.role == "user"]


def _release_claims(tx: Transaction, rows: Sequence[RowRecord]) -> None:
    """Let the messages of turns of which something goes be sent again."""
    turns: dict[int, dict[str, None]] = {}
    for row in rows:
        if row.turn_id is not None:
            turns.setdefault(row.session_key, {})[row.turn_id] = None
    for session_key, tickets in turns.items():
        tx.entries.release_claims(session_key, list(tickets))
