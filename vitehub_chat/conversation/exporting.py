"""Exporting: a conversation as lines of NDJSON, a bounded number of rows at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.as_json import row_to_json, summary_to_json
from vitehub_chat.conversation.summaries import list_summaries
from vitehub_chat.model.json_text import show_json
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.row_requests import AgeLimit


async def export_lines(
    state: AgentState,
    key: ConversationKey,
    *,
    session_id: str | None,
    not_older_than: AgeLimit | None,
) -> AsyncIterator[str]:
    """Yield the session, its messages ascending, its summaries, and the end with counts."""
    yield _line({"type": "session", **attrs.asdict(key), "session_id": session_id})
    count = unreadable = 0
    async for batch in state.transcripts.export(
        key, session_id=session_id, not_older_than=not_older_than
    ):
        for seq in batch.unreadable:
            events.row_quarantined(store="transcripts", seq=seq, key=key)
        unreadable += len(batch.unreadable)
        count += len(batch.rows)
        for row in batch.rows:
            yield _line({"type": "message", **row_to_json(row)})
    summaries = 0
    async for found in list_summaries(state, key, session_id):
        summaries += 1
        about = {"kind": found.kind, "session_id": found.session_id}
        yield _line({"type": "summary", **about, **summary_to_json(found.summary)})
    end = {"messages": count, "summaries": summaries, "unreadable": unreadable}
    yield _line({"type": "end", **end})


def _line(fields: Mapping[str, Any]) -> str:
    return show_json(fields, "export") + "\n"
