"""Plans: what a turn gave to the model and what it left out, without any text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import attrs

from vitehub_chat.model.results import ContextBudget, SelectionEntry
from vitehub_chat.model.rows import RowStatus
from vitehub_chat.model.selections import KEPT, Selection

MAX_CUT = 500
"""How many of the cut messages a plan names: those nearest to what was kept."""


@attrs.frozen
class AnsweredBy:
    """Who answered: the kind of the driver, the model and the wire format, as far as known."""

    driver: str | None = None
    model: str | None = None
    profile: str | None = None


@attrs.frozen
class PlanSummary:
    """Which rolling summary the model was given: its version, and the last row it covers."""

    version: int
    through_seq: int


@attrs.frozen(kw_only=True)
class TurnPlan:
    """What the model was given in one turn: ids, reasons and sizes, no text.

    Attributes:
        turn_id: The turn, as in `Row.turn_id`.
        session_id: Its session, or None for the unnamed one.
        run_id: The id of the run that the caller gave, or None.
        status: How the turn ended.
        answered_by: Driver, model and profile.
        created_at: When the turn began to select.
        summary: The rolling summary it was given, or None.
        entries: What became of each message: the kept ones in the order of the model, then the cut
            ones.
        left_out: How many of the oldest cut messages are not among them; see `MAX_CUT`.
        trimmed: How many messages were kept from the model because they did not fit.
        context_budget: How much of the window was used, or None where nothing is estimated.
    """

    turn_id: str
    session_id: str | None = None
    run_id: str | None = None
    status: RowStatus
    answered_by: AnsweredBy = AnsweredBy()
    created_at: datetime
    summary: PlanSummary | None = None
    entries: tuple[SelectionEntry, ...] = ()
    left_out: int = 0
    trimmed: int = 0
    context_budget: ContextBudget | None = None


def plan_entries(selection: Sequence[SelectionEntry]) -> tuple[tuple[SelectionEntry, ...], int]:
    """Return the kept entries, then the newest `MAX_CUT` cut ones, and how many were left out."""
    kept, cut = _split(selection)
    left_out = max(len(cut) - MAX_CUT, 0)
    return tuple(selection[index] for index in (*kept, *cut[left_out:])), left_out


def _split(selection: Sequence[SelectionEntry]) -> tuple[list[int], list[int]]:
    indices: tuple[list[int], list[int]] = ([], [])
    for index, is_kept in enumerate(_facts(selection)):
        indices[not is_kept].append(index)
    return indices


def _facts(selection: Sequence[SelectionEntry]) -> Iterator[bool]:
    if isinstance(selection, Selection):
        # Without building the entries: of a long thread most are cut.
        return (reason in KEPT for reason in selection.reasons)
    return (entry.kept for entry in selection)
