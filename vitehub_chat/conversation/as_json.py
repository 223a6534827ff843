"""As JSON: rows and summaries as exports and the command show them."""

from __future__ import annotations

from typing import Any

from vitehub_chat.model.messages import format_time
from vitehub_chat.model.rows import Row, Summary


def row_to_json(row: Row) -> dict[str, Any]:
    """Return a row as JSON, its message as a UI message."""
    fields: dict[str, Any] = {
        "message": row.message.to_json(),
        "seq": row.seq,
        "status": row.status,
        "session_id": row.session_id,
        "turn_no": row.turn_no,
        "created_at": format_time(row.said_at),
    }
    if row.cursor:
        fields["cursor"] = row.cursor
    return fields


def summary_to_json(summary: Summary) -> dict[str, Any]:
    """Return a summary as JSON."""
    return {
        "text": summary.text,
        "created_at": format_time(summary.created_at),
        "through_seq": summary.through_seq,
        "model": summary.model,
    }
