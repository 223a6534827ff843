"""Needs: what a step will probably look at."""

from __future__ import annotations

import attrs

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.records import DocumentKind
from vitehub_chat.state.row_requests import TurnsRequest
from vitehub_chat.state.steps.listing import ListRequest
from vitehub_chat.state.values import PageRequest, SessionRequest, WindowRequest


@attrs.frozen(kw_only=True)
class Needs:
    """What a step will probably look at, for a store that has to fetch it from afar.

    It is a guess: what it leaves out is fetched when the step asks for it, which takes longer and
    changes nothing else.

    Attributes:
        now: The time of the call, in microseconds since 1970.
        lock_keys: Locks, with those who hold them or wait for them.
        ticket_id: An entry, with the lock it wants and the conversation it was recorded in.
        claim_key: A claim.
        conversation: A conversation.
        session: A session that is to be resolved.
        session_key: A session by its number.
        session_ids: Sessions of the conversation by their ids.
        message_ids: Rows of the conversation by their message ids.
        window: The newest rows of the session.
        page: A page of the conversation.
        rows_above: The rows of the conversation above a number, `rows_limit` of them; or None.
        rows_limit: How many.
        sessions: A list of sessions.
        documents: Documents of the conversation, by kind and name.
        newest_documents: The kinds of which the newest documents of the sessions are looked at.
        value: The home and the name of a value.
        turns: An index of user messages.
        has_open: Whether the turns that are under way in the conversation are looked at.
        clears: Whether everything of the conversation is to be deleted.
        has_summary: Whether the manual summary is looked at.
    """

    now: int
    lock_keys: tuple[str, ...] = ()
    ticket_id: str | None = None
    claim_key: str | None = None
    conversation: ConversationKey | None = None
    session: SessionRequest | None = None
    session_key: int | None = None
    session_ids: tuple[str | None, ...] = ()
    message_ids: tuple[str, ...] = ()
    window: WindowRequest | None = None
    page: PageRequest | None = None
    rows_above: int | None = None
    rows_limit: int = 0
    sessions: ListRequest | None = None
    documents: tuple[tuple[DocumentKind, str], ...] = ()
    newest_documents: tuple[DocumentKind, ...] = ()
    value: tuple[str, str] | None = None
    turns: TurnsRequest | None = None
    has_open: bool = False
    clears: bool = False
    has_summary: bool = False
