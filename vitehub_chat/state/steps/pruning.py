"""Pruning: rows that a rule chooses are deleted or hidden; summaries and claims stay."""

from __future__ import annotations

from collections.abc import Sequence

from vitehub_chat.errors import ConfigError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import Retention
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.row_requests import Pruned, PruneRequest, RowChoice
from vitehub_chat.state.steps.anchors import readable_rolling
from vitehub_chat.state.steps.aside import put_aside
from vitehub_chat.state.steps.removing import forget_rows
from vitehub_chat.state.steps.scopes import Scope, find_scope
from vitehub_chat.state.steps.visible import VisibleRows, is_growing
from vitehub_chat.state.tables import Transaction


def check_prune(request: PruneRequest, retention: Retention) -> None:
    """Refuse to delete what the retention keeps.

    Raises:
        ConfigError: It is `forever`, and rows would be deleted.
    """
    if retention == "forever" and not request.hides:
        raise ConfigError(
            "deletes what transcripts.retention='forever' keeps",
            path="transcripts.prune.mode",
            hint="hide rows instead, or leave one of them out",
        )


def prune(tx: Transaction, key: ConversationKey, request: PruneRequest, now: int) -> Pruned:
    """Carry out `TranscriptStore.prune`."""
    scope = find_scope(tx, key, request.session_id)
    rows = _candidates(tx, scope, now)
    batch = VisibleRows(tx, scope.rows(now)).decode(rows)
    chosen = frozenset(_choice_of(tx, request, rows, now)(batch.rows))
    return _take(tx, scope, [row for row in rows if row.seq in chosen], request, now)


def prune_gently(
    tx: Transaction, home: str, request: PruneRequest, retention: Retention, now: int
) -> Pruned:
    """Prune the conversation of a turn that ends; a rule that fails does not fail the turn."""
    scope = find_scope(tx, ConversationKey.decode(home), request.session_id)
    rows = _candidates(tx, scope, now)
    batch = VisibleRows(tx, scope.rows(now)).decode(rows)
    choose = _choice_of(tx, request, rows, now)
    try:
        check_prune(request, retention)
        chosen = frozenset(choose(batch.rows))
    except Exception as error:  # noqa: BLE001 - told to who asked; the answer is stored
        return Pruned(error=error)
    return _take(tx, scope, [row for row in rows if row.seq in chosen], request, now)


def _choice_of(
    tx: Transaction, request: PruneRequest, records: Sequence[RowRecord], now: int
) -> RowChoice:
    """Return what chooses; it may be told what no summary covers yet."""
    choose = request.choose_sparing
    if choose is None:
        return request.choose
    anchors: dict[int, int] = {}
    for key in {record.session_key for record in records}:
        rolling = readable_rolling(tx, key, now)
        anchors[key] = 0 if rolling is None else rolling.anchor
    uncovered = [record.seq for record in records if record.seq >= anchors[record.session_key]]
    return lambda rows: choose(rows, uncovered)


def _candidates(tx: Transaction, scope: Scope, now: int) -> list[RowRecord]:
    """Return the visible rows, without answers that are being written."""
    if not scope.exists:
        return []
    slices = VisibleRows(tx, scope.rows(now)).slices(0)
    return [row for each in slices for row in each if not is_growing(tx, row, now)]


def _take(
    tx: Transaction, scope: Scope, rows: list[RowRecord], request: PruneRequest, now: int
) -> Pruned:
    gone = rows[: request.limit]
    if request.hides:
        put_aside(tx, scope.encoded, gone, "hidden", now)
    else:
        tx.rows.remove(gone)
    forget_rows(tx, scope, gone)
    return Pruned(removed=tuple(row.seq for row in gone))
