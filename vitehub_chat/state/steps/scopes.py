"""Scopes: a whole conversation, or one session of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from vitehub_chat.errors import NotFoundError
from vitehub_chat.model.keys import ConversationKey, encode_key
from vitehub_chat.state.records import ConversationRecord, EntryRecord, RowRecord, SessionRecord
from vitehub_chat.state.tables import Lanes, RowQuery, Transaction


@attrs.frozen
class Scope:
    """A conversation or one session of it, as far as they exist.

    Attributes:
        encoded: The encoded key of the conversation.
        conversation: The conversation, or None if nothing was stored in it.
        is_whole: Whether it is the whole conversation.
        session_id: The id of the session that it is narrowed to, if it is.
        session: That session, or None.
    """

    encoded: str
    conversation: ConversationRecord | None
    is_whole: bool
    session_id: str | None = None
    session: SessionRecord | None = None

    @property
    def session_key(self) -> int | None:
        """The number of the session, or None."""
        return None if self.session is None else self.session.key

    @property
    def generation(self) -> int:
        """The generation of the conversation; 0 if nothing was stored in it."""
        return 0 if self.conversation is None else self.conversation.generation

    @property
    def exists(self) -> bool:
        """Whether there may be rows in it."""
        return self.conversation is not None and (self.is_whole or self.session is not None)

    def rows(self, now: int) -> RowQuery:
        """Return the query for its rows; a session that does not exist has none."""
        narrowed = None
        if not self.is_whole:
            narrowed = 0 if self.session is None else self.session.key
        key = 0 if self.conversation is None else self.conversation.key
        return RowQuery(conversation_key=key, session_key=narrowed, now=now)


def find_scope(tx: Transaction, key: ConversationKey, session_id: str | None) -> Scope:
    """Return a conversation, or one session of it."""
    encoded = key.encode()
    conversation = tx.conversations.get(encoded)
    session = None
    if conversation is not None and session_id is not None:
        session = tx.sessions.of_conversation(conversation.key, session_id)
    return Scope(
        encoded, conversation, is_whole=session_id is None, session_id=session_id, session=session
    )


def find_session(
    tx: Transaction, key: ConversationKey, session_id: str | None
) -> SessionRecord | None:
    """Return the session of an id in a conversation, None being the unnamed one, if it exists."""
    conversation = tx.conversations.get(key.encode())
    if conversation is None:
        return None
    return tx.sessions.of_conversation(conversation.key, session_id)


def scope_of(tx: Transaction, session: SessionRecord) -> Scope:
    """Return the scope of a session, also of one without an id."""
    conversation = tx.conversations.get(session.conversation)
    return Scope(
        session.conversation,
        conversation,
        is_whole=False,
        session_id=session.session_id,
        session=session,
    )


def sessions_in(tx: Transaction, scope: Scope) -> Sequence[SessionRecord]:
    """Return the sessions of a scope that exist."""
    if scope.is_whole:
        return () if scope.conversation is None else tx.sessions.all_of(scope.conversation.key)
    return () if scope.session is None else (scope.session,)


def lanes_of(tx: Transaction, scope: Scope) -> Lanes:
    """Return the lanes in which messages of the conversation wait for the session of a scope."""
    own = encode_key(scope.encoded, scope.session_id)
    session = scope.session
    if session is None:
        return own, own
    newest = tx.sessions.latest(session.scope, session.base)
    leads_here = newest is not None and newest.key == session.key
    return own, encode_key(scope.encoded, session.base) if leads_here else own


def entries_in(tx: Transaction, scope: Scope) -> Iterator[EntryRecord]:
    """Yield the entries of a scope that have not ended.

    Also those that arrived in other conversations and were recorded in a session of this one.
    """
    arrived = tx.entries.open_in(scope.encoded)
    if scope.is_whole:
        yield from arrived
    else:
        lanes = lanes_of(tx, scope)
        for entry in arrived:
            if entry.session_key is None and entry.lane in lanes and not entry.starts_session:
                yield entry
    for session in sessions_in(tx, scope):
        for entry in tx.entries.open_of_session(session.key):
            if not scope.is_whole or entry.conversation != scope.encoded:
                yield entry


def find_message(tx: Transaction, scope: Scope, message_id: str, now: int) -> RowRecord:
    """Return the row of a message in a scope.

    Raises:
        NotFoundError: There is none.
    """
    found = None
    if scope.conversation is not None and scope.exists:
        found = tx.rows.by_message(scope.conversation.key, message_id, now)
    if found is None or scope.rows(now).session_key not in {None, found.session_key}:
        raise no_message()
    return found


def no_message() -> NotFoundError:
    """Return what is raised for a message that is not there."""
    return NotFoundError("no message of that id in this conversation")
