"""Hits: stored messages that a search found."""

from __future__ import annotations

from datetime import datetime

import attrs

from vitehub_chat.model.keys import ConversationKey


@attrs.frozen(kw_only=True)
class SearchHit:
    """One message that a search found.

    Attributes:
        id: The client's name of the conversation, or None.
        conversation: The conversation that has it.
        session_id: Its session, or None for the unnamed one.
        title: The title of the session, or None.
        message_id: Its id; what `get` and `history` take as `around`.
        seq: Its number in the conversation.
        role: Who said it.
        created_at: When it was said, or stored if that is not known.
        snippet: The part of its text around the first match, at most 300 characters on one line,
            with every match between `**` and `**`, and `…` where text was left out.
        score: How often the words occur in it.
        pieces: The snippet without its marks, in pieces of which every second one is a match; for
            texts that have `**` themselves. Empty if the store does not tell.
    """

    id: str | None
    conversation: ConversationKey
    session_id: str | None
    title: str | None
    message_id: str
    seq: int
    role: str
    created_at: datetime
    snippet: str
    score: int
    pieces: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class SearchPage:
    """What a search found: of the sessions with the newest activity first, the newest hits first.

    Attributes:
        unreadable: Where rows are that may be hits and cannot be read; they stay stored.
    """

    items: tuple[SearchHit, ...] = ()
    unreadable: tuple[tuple[ConversationKey, int], ...] = ()
