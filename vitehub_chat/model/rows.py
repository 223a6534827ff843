"""Rows: stored messages, and pages of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import attrs

from vitehub_chat.model.json_text import Json, JsonObject
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.results import ContextBudget

RowStatus = Literal["complete", "interrupted", "error", "pending"]


@attrs.frozen(kw_only=True)
class Row:
    """A stored message.

    Attributes:
        message: The message, with its parts as supplied.
        seq: Its number in the conversation, from 1; the only order, never used again.
        status: How it ended; `pending` while its turn runs.
        session_id: The session it was recorded in, or None for the unnamed one.
        turn_no: Which user message of its session it is or answers, from 1.
        cursor: Its position for pages; empty outside of pages.
        recorded_at: When it was stored.
        thread_id: The thread it arrived in.
        turn_id: The turn that recorded it.
        author: The user key of its author, or None.
        usage: What the model reported for it, or None.
        native: The payload of the driver that made it, `{"format", "payload"}`, or None.
        is_shown: Whether a model may see it: not empty, not failed, not hidden.
        is_superseded: It was cut off, and is kept only by the retention `forever`.
    """

    message: Message
    seq: int
    status: RowStatus = "complete"
    session_id: str | None = None
    turn_no: int = 0
    cursor: str = ""
    recorded_at: datetime
    thread_id: str | None = None
    turn_id: str | None = None
    author: str | None = None
    usage: JsonObject | None = None
    native: Mapping[str, Json] | None = None
    is_shown: bool = True
    is_superseded: bool = False

    @property
    def said_at(self) -> datetime:
        """When it was said, or stored if that is not known."""
        return self.message.created_at or self.recorded_at


@attrs.frozen(kw_only=True)
class TurnItem:
    """One user message as an index of a conversation shows it.

    Attributes:
        turn_no: Which user message of its session it was, from 1.
        message_id: Its id.
        seq: Its number in the conversation.
        preview: Its first 80 characters on one line.
        created_at: When it was said, or stored if that is not known.
        has_reply: Whether an answer to it is stored.
    """

    turn_no: int
    message_id: str
    seq: int
    preview: str
    created_at: datetime
    has_reply: bool


@attrs.frozen(kw_only=True)
class TurnPage:
    """Some user messages, ascending; `next_cursor` is None at the end.

    Attributes:
        unreadable: The numbers of rows between them that cannot be read; they stay stored.
    """

    items: tuple[TurnItem, ...]
    next_cursor: str | None = None
    unreadable: tuple[int, ...] = ()


@attrs.frozen(kw_only=True)
class MessageRange:
    """Whole messages of a session, ascending.

    Attributes:
        items: The rows.
        truncated: There are more of those that were asked for.
        unreadable: The numbers of rows among them that cannot be read; they stay stored.
    """

    items: tuple[Row, ...]
    truncated: bool = False
    unreadable: tuple[int, ...] = ()


@attrs.frozen(kw_only=True)
class Truncated:
    """What was cut off.

    Attributes:
        deleted: How many messages.
        live_edge_seq: The newest number that is left, or 0.
        generation: The generation now; it rises unless nothing was cut.
        summary: Whether the rolled summary was kept, an earlier one restored, or it is empty now.
    """

    deleted: int
    live_edge_seq: int
    generation: int
    summary: Literal["kept", "restored", "reset"] = "kept"


@attrs.frozen(kw_only=True)
class HistoryPage:
    """Some rows of a conversation, ascending.

    Attributes:
        items: The rows.
        older_cursor: Leads to older rows; None exactly when there are none.
        newer_cursor: Leads to newer rows, also to those stored later.
        at_live_edge: No visible row lies after this page.
        generation: Rises with every truncate and clear.
        reset: The conversation was cut below the cursor; load it anew.
        live_edge_seq: The newest visible seq, or 0.
        context_budget: What the turn that ended last used; None elsewhere than on the newest page.
        unreadable: The numbers of rows of this page that cannot be read; they stay stored.
    """

    items: tuple[Row, ...]
    older_cursor: str | None
    newer_cursor: str
    at_live_edge: bool
    generation: int
    reset: bool = False
    live_edge_seq: int = 0
    context_budget: ContextBudget | None = None
    unreadable: tuple[int, ...] = ()

    @property
    def next_cursor(self) -> str | None:
        """The same as `older_cursor`."""
        return self.older_cursor


@attrs.frozen(kw_only=True)
class SessionInfo:
    """One session as lists show it.

    Attributes:
        id: The client's name of the conversation, or None.
        session_id: Its id, or None for the unnamed one.
        conversation: Where it began; its rows are there.
        title: Its title, or None.
        started_at: When it started.
        last_message_at: The newest message; only messages move it, and only forward.
        message_count: How many rows it has.
        user_key: Its owner, or None.
        generation: Rises with every truncate and clear.
    """

    id: str | None
    session_id: str | None
    conversation: ConversationKey
    title: str | None
    started_at: datetime
    last_message_at: datetime
    message_count: int
    user_key: str | None = None
    generation: int = 0


@attrs.frozen(kw_only=True)
class SessionPage:
    """Some sessions, newest activity first; `next_cursor` is None at the end.

    Attributes:
        unreadable: How many others there are in their place that cannot be read; they stay stored.
    """

    items: tuple[SessionInfo, ...]
    next_cursor: str | None = None
    unreadable: int = 0


@attrs.frozen(kw_only=True)
class Summary:
    """A summary of a conversation.

    Attributes:
        text: What it says.
        created_at: When it was saved.
        through_seq: The last row it covers, or None for a manual one.
        version: How often the summary or its end was changed, or None for a manual one.
        model: Which model wrote it, or None if that is not known; None for a manual one.
    """

    text: str
    created_at: datetime
    through_seq: int | None = None
    version: int | None = None
    model: str | None = None


@attrs.frozen(kw_only=True)
class SessionDetails(SessionInfo):
    """One session with what is known of its summaries and its size.

    Attributes:
        rolling: Its rolled summary, or None.
        manual: The summary that was saved by hand, or None.
        context_budget: What the turn that ended last used, or None.
    """

    rolling: Summary | None = None
    manual: Summary | None = None
    context_budget: ContextBudget | None = None
