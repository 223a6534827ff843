"""Conversations to prune: rows with calls, results, questions and decisions in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from vitehub_chat.model.messages import Message
from vitehub_chat.model.rows import Row

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
Parts = Sequence[Mapping[str, Any]]


def text(content: str = "text") -> Mapping[str, Any]:
    return {"type": "text", "text": content}


def call(call_id: str) -> Mapping[str, Any]:
    return {"type": "tool-call", "id": call_id, "name": "get", "input": {}}


def result(call_id: str) -> Mapping[str, Any]:
    return {"type": "tool-result", "id": call_id, "name": "get", "output": "done"}


def asked(call_id: str, approval_id: str | None = None) -> Mapping[str, Any]:
    """Return the part of a client whose call awaits a decision."""
    return _approval(call_id, "approval-requested", {"id": approval_id or f"ap-{call_id}"})


def decided(call_id: str, approval_id: str | None = None) -> Mapping[str, Any]:
    """Return the part of a client whose call was decided about."""
    decision = {"id": approval_id or f"ap-{call_id}", "approved": True}
    return _approval(call_id, "approval-responded", decision)


def _approval(call_id: str, state: str, approval: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "tool-get", "toolCallId": call_id, "state": state, "approval": approval}


def message(role: str, *parts: Mapping[str, Any], at: datetime | None = NOW) -> Message:
    return Message(None, role, parts, created_at=at)


def rows_of(*messages: Message) -> list[Row]:
    return [
        Row(message=message, seq=seq, recorded_at=NOW) for seq, message in enumerate(messages, 1)
    ]


_IDS = st.sampled_from(["c1", "c2", "c3"])
_APPROVALS = st.sampled_from(["ap1", "ap2"])
_PARTS = st.one_of(
    st.integers(0, 60).map(lambda count: text("x" * count)),
    _IDS.map(call),
    _IDS.map(result),
    st.builds(asked, _IDS, _APPROVALS),
    st.builds(decided, _IDS, _APPROVALS),
)
_CALM_PARTS = st.one_of(
    st.integers(0, 60).map(lambda count: text("x" * count)), _IDS.map(call), _IDS.map(result)
)
_ROLES = st.sampled_from(["user", "assistant", "tool", "system"])
_AGES = st.integers(0, 100)


def _message(role: str, parts: Parts, hours: int | None) -> Message:
    return message(role, *parts, at=None if hours is None else NOW - timedelta(hours=hours))


CONVERSATIONS = st.lists(
    st.builds(_message, _ROLES, st.lists(_PARTS, max_size=3), st.none() | _AGES), max_size=12
).map(lambda messages: rows_of(*messages))
"""Any: undated messages, times that jump, ids used again, decisions before questions."""


@st.composite
def _calm(draw: st.DrawFn) -> list[Row]:
    ages = sorted(draw(st.lists(_AGES, max_size=12)), reverse=True)
    parts = st.lists(_CALM_PARTS, max_size=3)
    return rows_of(*(_message(draw(_ROLES), draw(parts), hours) for hours in ages))


CALM_CONVERSATIONS = _calm()
"""Times never decrease and nothing awaits a decision."""
