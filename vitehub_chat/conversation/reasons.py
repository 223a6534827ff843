"""Reasons: why a message is kept or cut, in words."""

from __future__ import annotations

from collections.abc import Mapping

from vitehub_chat.model.results import SelectionReason

REASONS: Mapping[SelectionReason, str] = {
    "current": "the message that is answered",
    "window": "inside the window",
    "retained": "waited with the current message and is answered with it",
    "duplicate": "a message of the same id stands for it",
    "other_session": "belongs to another session",
    "before_session": "came before the session began",
    "no_window": "without trigger_history the current message stands alone",
    "too_old": "older than max_age_ms, or before such a message",
    "over_count": "the newer ones fill max_messages",
    "orphan_tool_result": "a tool result whose call was cut",
    "not_shown": "empty, failed or hidden, so never given to a model",
    "not_used": "supplied, but the window is read from the transcript",
    "rolled": "condensed into the summary",
    "trimmed": "did not fit into the model's window",
}
