"""Records: the rows of the tables that every provider keeps. Times are microseconds since 1970."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from vitehub_chat.model.rows import Row, RowStatus

EntryState = Literal["waiting", "running", "recorded", "ended", "lost"]
DocumentKind = Literal["plan", "rolling", "checkpoints", "value", "hidden", "superseded"]
"""What a document is: the plan of a turn, the rolling summary of a session, its checkpoints, a
value of a key, or a row that was put aside by pruning or by truncating."""


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
        settles_at: When its line may run if nothing follows it, or None: it need not settle.
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
    settles_at: int | None = None


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


class Keepable:
    """A record with a place for what was decoded of it, which is no part of its value.

    Attributes:
        decoded: That, or None until it is decoded. Records that nobody keeps lack the attribute.
    """

    __slots__ = ("decoded",)
    decoded: Row | None


_set_decoded: Any = vars(Keepable)["decoded"].__set__


def keep_decoded(record: Keepable, row: Row | None) -> None:
    """Keep what was decoded of a record; None makes the place for it."""
    _set_decoded(record, row)


@attrs.frozen(kw_only=True)
class RowRecord(Keepable):
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
class AuthoredRow:
    """Where a message of a person is: the conversation, encoded, and a number in the store."""

    id: int
    conversation: str
    message_id: str


@attrs.frozen(kw_only=True)
class SummaryRecord:
    """A manual summary; `session_key` 0 is that of the conversation."""

    conversation_key: int
    session_key: int
    text: str
    created_at: int


@attrs.frozen(kw_only=True)
class DocumentRecord:
    """A document: JSON text under a name, in the conversation or the scope that is its home.

    Attributes:
        home: The encoded key of the conversation it belongs to; for a value, of its scope.
        kind: What it is; names are of one kind in one home.
        name: The ticket of the turn for a plan, the session's number for a rolling summary and its
            checkpoints, the key for a value, its own number for a row that was put aside.
        session_key: The session it belongs to, 0 for none.
        number: Its place among those of its kind and session.
        body: The JSON text.
        expires_at: When it is gone, or None.
    """

    home: str
    kind: DocumentKind
    name: str
    session_key: int = 0
    number: int = 0
    body: str
    created_at: int
    expires_at: int | None = None
