"""Records: the rows of the tables that every provider keeps. Times are microseconds since 1970."""

from __future__ import annotations

from typing import Literal

import attrs

from vitehub_chat.model.rows import RowStatus

EntryState = Literal["waiting", "running", "recorded", "ended", "lost"]


@attrs.frozen(kw_only=True)
class LockRecord:
    """A held lock; one whose lease is over counts as free."""

    lock_key: str
    token: int
    ticket_id: str
    owner: str
    until: int


@attrs.frozen(kw_only=True)
class EntryRecord:
    """An accepted message on its way to an answer.

    Attributes:
        position: Its place in the order of arrival; 0 until it is inserted.
        lane: Conversation and wanted session, encoded; messages of one lane may share a run.
        claim_key: Conversation and claim id, encoded, while it claims that id; else None.
        payload: Its input as JSON text, until it is recorded.
        state: `running` is granted and not recorded yet, `lost` is recorded and died.
        attended_until: How long somebody is known to wait for it.
        expires_at: When it may not run any more, while it waits.
        claim_until: How long its claim lasts after it ended.
        keep_until: How long its end can be looked up.
        run_ticket_id: The entry that its run answers.
        session_key: The session its run was recorded in, or None.
        end: How it ended, as JSON text.
    """

    ticket_id: str
    position: int = 0
    lock_key: str
    conversation: str
    lane: str
    claim_id: str | None
    claim_key: str | None
    payload: str | None
    starts_session: bool
    coalesces: bool
    state: EntryState
    owner: str | None
    attended_until: int
    expires_at: int | None
    claim_until: int
    keep_until: int
    run_ticket_id: str | None = None
    session_key: int | None = None
    end: str | None = None


@attrs.frozen(kw_only=True)
class ConversationRecord:
    """A conversation; its counters survive everything."""

    key: int
    encoded: str
    last_seq: int
    generation: int


@attrs.frozen(kw_only=True)
class SessionRecord:
    """A session.

    Attributes:
        key: Its number, rising with every session.
        scope: Where its base is unique: the channel, or the conversation for one without base.
        base: The id it was asked for under, or None.
        session_id: Its own id, or None.
        conversation_key: The number of the conversation that has its rows.
    """

    key: int = 0
    scope: str
    base: str | None
    session_id: str | None
    conversation_key: int
    conversation: str
    tenant: str | None
    agent: str | None
    user_key: str | None
    chat_id: str | None
    title: str | None = None
    first_message_id: str | None
    started_at: int
    last_message_at: int
    message_count: int = 0
    turn_count: int = 0
    generation: int = 0
    began_by_new: bool = False


@attrs.frozen(kw_only=True)
class RowRecord:
    """A stored message.

    Attributes:
        body: Parts and metadata as JSON text.
        extra: Usage and native payload as JSON text, or None.
        fence_key: The lock of the turn that writes it, while it is pending.
        fence_token: The token of that lock.
        expires_at: When it is gone, or None.
    """

    conversation_key: int
    seq: int
    session_key: int
    session_id: str | None
    message_id: str
    role: str
    status: RowStatus
    created_at: int | None
    recorded_at: int
    turn_no: int
    turn_id: str | None
    thread_id: str | None
    author: str | None
    is_shown: bool
    body: str
    extra: str | None
    fence_key: str | None = None
    fence_token: int | None = None
    expires_at: int | None = None


@attrs.frozen(kw_only=True)
class SummaryRecord:
    """A manual summary; `session_key` 0 is that of the conversation."""

    conversation_key: int
    session_key: int
    text: str
    created_at: int
