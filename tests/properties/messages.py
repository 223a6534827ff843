"""Messages as hypothesis makes them: ids that repeat, times in any order, ids of sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from vitehub_chat.model.messages import Message

START = datetime(2026, 1, 1, tzinfo=UTC)
PARTS: tuple[dict[str, Any], ...] = (
    {"type": "text", "text": "hi"},
    {"type": "tool-result", "id": "t1", "name": "search", "output": 1},
)


POOL = st.sampled_from([None, "a", "b", "c", "d"])
"""A few ids, so that they repeat."""


def messages(ids: st.SearchStrategy[str | None] = POOL) -> st.SearchStrategy[Message]:
    """Return messages with ids of a strategy."""
    return st.builds(
        Message,
        ids,
        st.sampled_from(["user", "assistant", "tool"]),
        st.lists(st.sampled_from(PARTS), min_size=1, max_size=2).map(tuple),
        st.sampled_from([{}, {"sessionId": "s"}, {"sessionId": "z"}]),
        st.none() | st.integers(0, 300).map(lambda seconds: START + timedelta(seconds=seconds)),
    )


ARRAYS = st.lists(messages(), min_size=1, max_size=12).map(tuple)
"""Arrays of messages, the last one being the current."""
