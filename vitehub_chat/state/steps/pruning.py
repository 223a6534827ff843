"""Pruning: rows that a rule chooses are deleted or hidden; summaries and claims stay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from vitehub_chat.errors import ConfigError
from vitehub_chat.model.clock import to_epoch_us
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import Retention
from vitehub_chat.model.rows import Row
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.row_requests import Pruned, PruneRequest, RowChoice
from vitehub_chat.state.steps.anchors import readable_rolling
from vitehub_chat.state.steps.aside import put_aside
from vitehub_chat.state.steps.removing import forget_rows
from vitehub_chat.state.steps.scopes import Scope, find_scope
from vitehub_chat.state.steps.visible import (
    NEIGHBOURS,
    VisibleRows,
    decode_readable,
    is_growing,
    said_at,
)
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
    pruning = _Pruning.of(tx, key, request, now)
    return pruning.take(pruning.choose())


def prune_gently(
    tx: Transaction, home: str, request: PruneRequest, retention: Retention, now: int
) -> Pruned:
    """Prune the conversation of a turn that ends; a rule that fails does not fail the turn."""
    pruning = _Pruning.of(tx, ConversationKey.decode(home), request, now)
    try:
        check_prune(request, retention)
        chosen = pruning.choose()
    except Exception as error:  # noqa: BLE001 - told to who asked; the answer is stored
        return Pruned(error=error)
    return pruning.take(chosen)


@attrs.frozen
class _Pruning:
    """What a rule chooses among, and how that is taken away."""

    _tx: Transaction
    _scope: Scope
    _request: PruneRequest
    _now: int
    _records: list[RowRecord]
    _rows: Sequence[Row]
    _choose: RowChoice

    @classmethod
    def of(cls, tx: Transaction, key: ConversationKey, request: PruneRequest, now: int) -> _Pruning:
        """Read the candidates."""
        scope = find_scope(tx, key, request.session_id)
        records = _candidates(tx, scope, request, now)
        rows = decode_readable(tx, records, now).rows
        choose = _choice_of(tx, request, records, now)
        return cls(tx, scope, request, now, records, rows, choose)

    def choose(self) -> frozenset[int]:
        """Return the numbers of the rows that the rule chooses."""
        return frozenset(self._choose(self._rows))

    def take(self, chosen: frozenset[int]) -> Pruned:
        """Delete or hide the first rows of those chosen."""
        gone = [row for row in self._records if row.seq in chosen][: self._request.limit]
        if self._request.hides:
            put_aside(self._tx, self._scope.encoded, gone, "hidden", self._now)
        else:
            self._tx.rows.remove(gone)
        forget_rows(self._tx, self._scope, gone)
        return Pruned(removed=tuple(row.seq for row in gone))


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


def _candidates(tx: Transaction, scope: Scope, request: PruneRequest, now: int) -> list[RowRecord]:
    """Return the visible rows that matter, without answers that are being written."""
    if not scope.exists:
        return []
    slices = VisibleRows(tx, scope.rows(now)).slices(0)
    if request.said_before is None:
        found = [row for rows in slices for row in rows]
    else:
        found = _around_old(slices, to_epoch_us(request.said_before))
    return [row for row in found if not is_growing(tx, row, now)]


def _around_old(slices: Iterable[Sequence[RowRecord]], since: int) -> list[RowRecord]:
    """Return the rows up to the last one before a time, and its neighbours; none without one."""
    found: list[RowRecord] = []
    end = 0
    for rows in slices:
        begin = len(found)
        found.extend(rows)
        end = max(
            (begin + at + 1 for at, row in enumerate(rows) if said_at(row) < since), default=end
        )
        if len(found) - end >= NEIGHBOURS:
            break
    return found[: end + NEIGHBOURS] if end else []
