"""Answers: what is stored, as clients read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from vitehub_chat.conversation.as_json import summary_to_json, without_none
from vitehub_chat.conversation.planning import summary_of
from vitehub_chat.model.messages import format_time
from vitehub_chat.model.plans import PlanSummary, TurnPlan, plan_entries
from vitehub_chat.model.results import ContextBudget, PreparedInvocation, SelectionEntry
from vitehub_chat.model.rows import Summary, TurnItem


def turn_to_json(item: TurnItem) -> dict[str, Any]:
    """Return one row of the turn index."""
    return {**attrs.asdict(item), "created_at": format_time(item.created_at)}


def summaries_to_json(rolling: Summary | None, manual: Summary | None) -> dict[str, Any]:
    """Return the summaries of a conversation, each null where there is none."""
    return {
        "rolling": None if rolling is None else summary_to_json(rolling),
        "manual": None if manual is None else summary_to_json(manual),
    }


def summary_facts_to_json(rolling: Summary | None, manual: Summary | None) -> dict[str, Any]:
    """Return what is known of the summaries of a conversation, without their texts."""
    told = summaries_to_json(rolling, manual)
    for summary in told.values():
        if summary is not None:
            del summary["text"]
    return told


def plan_to_json(plan: TurnPlan) -> dict[str, Any]:
    """Return what the model was given in a turn: ids, reasons and sizes, no text."""
    by = plan.answered_by
    return {
        **without_none(
            turn_id=plan.turn_id,
            session_id=plan.session_id,
            run_id=plan.run_id,
            status=plan.status,
            driver=by.driver,
            model=by.model,
            profile=by.profile,
            created_at=format_time(plan.created_at),
        ),
        **_given_to_json(plan.entries, plan.left_out, plan.summary, plan.context_budget),
    }


def next_to_json(prepared: PreparedInvocation) -> dict[str, Any]:
    """Return what the model would be given next, as far as it is known before a turn."""
    entries, left_out = plan_entries(prepared.selection)
    given = _given_to_json(entries, left_out, summary_of(prepared), prepared.context_budget)
    return {**without_none(session_id=prepared.session_id), **given}


def _given_to_json(
    entries: Sequence[SelectionEntry],
    left_out: int,
    summary: PlanSummary | None,
    budget: ContextBudget | None,
) -> dict[str, Any]:
    return {
        "summary": None if summary is None else attrs.asdict(summary),
        "entries": [without_none(**attrs.asdict(entry)) for entry in entries],
        "left_out": left_out,
        "trimmed": sum(entry.reason == "trimmed" for entry in entries),
        **without_none(context_budget=None if budget is None else budget.to_json()),
    }
