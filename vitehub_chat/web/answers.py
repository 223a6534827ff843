"""Answers: what is stored, as clients read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from vitehub_chat.conversation.planning import summary_of
from vitehub_chat.model.hits import SearchHit
from vitehub_chat.model.json_text import Json
from vitehub_chat.model.messages import format_time
from vitehub_chat.model.plans import PlanSummary, TurnPlan, plan_entries
from vitehub_chat.model.results import ContextBudget, PreparedInvocation, SelectionEntry
from vitehub_chat.model.rows import HistoryPage, Row, SessionInfo, Summary, TurnItem


def without_none(**fields: Json) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def row_to_json(row: Row) -> dict[str, Any]:
    """Return a row of a page; its message is a UI message."""
    return without_none(
        message=row.message.to_json(),
        seq=row.seq,
        status=row.status,
        session_id=row.session_id,
        turn_no=row.turn_no,
        turn_id=row.turn_id,
        cursor=row.cursor,
    )


def page_to_json(page: HistoryPage) -> dict[str, Any]:
    """Return a page of messages; its older cursor is null at the oldest row."""
    budget = page.context_budget
    return {
        "items": [row_to_json(row) for row in page.items],
        "older_cursor": page.older_cursor,
        "newer_cursor": page.newer_cursor,
        "at_live_edge": page.at_live_edge,
        "next_cursor": page.next_cursor,
        "generation": page.generation,
        "reset": page.reset,
        "live_edge_seq": page.live_edge_seq,
        **without_none(context_budget=None if budget is None else budget.to_json()),
    }


def turn_to_json(item: TurnItem) -> dict[str, Any]:
    """Return one row of the turn index."""
    return {**attrs.asdict(item), "created_at": format_time(item.created_at)}


def session_to_json(info: SessionInfo) -> dict[str, Any]:
    """Return one session as lists show it."""
    return without_none(
        id=info.id,
        session_id=info.session_id,
        title=info.title,
        started_at=format_time(info.started_at),
        last_message_at=format_time(info.last_message_at),
        message_count=info.message_count,
    )


def hit_to_json(hit: SearchHit) -> dict[str, Any]:
    """Return what a search found."""
    return without_none(
        id=hit.id,
        session_id=hit.session_id,
        title=hit.title,
        message_id=hit.message_id,
        seq=hit.seq,
        role=hit.role,
        created_at=format_time(hit.created_at),
        snippet=hit.snippet,
        score=hit.score,
    )


def summaries_to_json(rolling: Summary | None, manual: Summary | None) -> dict[str, Any]:
    """Return the summaries of a conversation, each null where there is none."""
    return {
        "rolling": None if rolling is None else _summary_to_json(rolling),
        "manual": None if manual is None else _summary_to_json(manual),
    }


def summary_facts_to_json(rolling: Summary | None, manual: Summary | None) -> dict[str, Any]:
    """Return what is known of the summaries of a conversation, without their texts."""
    told = summaries_to_json(rolling, manual)
    for summary in told.values():
        if summary is not None:
            del summary["text"]
    return told


def _summary_to_json(summary: Summary) -> dict[str, Any]:
    return without_none(
        text=summary.text,
        created_at=format_time(summary.created_at),
        through_seq=summary.through_seq,
        version=summary.version,
        model=summary.model,
    )


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
