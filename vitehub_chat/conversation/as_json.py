"""As JSON: rows, pages, sessions, hits and summaries, for routes, exports and the command."""

from __future__ import annotations

from typing import Any

from vitehub_chat.model.hits import SearchHit
from vitehub_chat.model.json_text import Json
from vitehub_chat.model.messages import format_time
from vitehub_chat.model.rows import HistoryPage, Row, SessionInfo, Summary


def without_none(**fields: Json) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def row_to_json(row: Row) -> dict[str, Any]:
    """Return a row, its message as a UI message; `created_at` is when it was said or stored."""
    return without_none(
        message=row.message.to_json(),
        seq=row.seq,
        status=row.status,
        session_id=row.session_id,
        turn_no=row.turn_no,
        turn_id=row.turn_id,
        created_at=format_time(row.said_at),
        cursor=row.cursor or None,
    )


def page_to_json(page: HistoryPage) -> dict[str, Any]:
    """Return a page of messages; its older cursor is null exactly at the oldest row."""
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


def session_to_json(info: SessionInfo) -> dict[str, Any]:
    """Return one session of a list, without the place that it belongs to."""
    return without_none(
        id=info.id,
        session_id=info.session_id,
        title=info.title,
        started_at=format_time(info.started_at),
        last_message_at=format_time(info.last_message_at),
        message_count=info.message_count,
    )


def hit_to_json(hit: SearchHit) -> dict[str, Any]:
    """Return what a search found, without the place that it belongs to."""
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


def summary_to_json(summary: Summary) -> dict[str, Any]:
    """Return a summary."""
    return without_none(
        text=summary.text,
        created_at=format_time(summary.created_at),
        through_seq=summary.through_seq,
        version=summary.version,
        model=summary.model,
    )
