"""Work: what a step relies on and what it changes, while it runs on what is known."""

from __future__ import annotations

from typing import Any, Final, Literal

import attrs

from vitehub_chat.state.sql.known import (
    ConversationPart,
    Known,
    LockPart,
    NewestOf,
    ValuePart,
)
from vitehub_chat.state.sql.looks.conversations import ConversationLook, SessionLook
from vitehub_chat.state.sql.looks.documents import ValueLook, value_scope, values_scope
from vitehub_chat.state.sql.looks.locks import LineLook
from vitehub_chat.state.sql.looks.look import Look, Miss
from vitehub_chat.state.sql.numbers import Numbers
from vitehub_chat.state.tables import Lanes

PlaceKind = Literal[
    "lock", "entry", "conversation", "session", "row", "summary", "document", "value"
]
Place = tuple[PlaceKind, str, int | str | tuple[str, str]]
"""Where a record is: its kind, the lock, conversation or value that it belongs to, and its key."""

Change = tuple[Place, Any, Any]
"""A record that is not what it was: its place, as it was, and as it is now."""

_NONE: Final = frozenset[NewestOf]()


@attrs.frozen
class Raise:
    """The next revision of a scope, and since when nobody wants it, if that is so."""

    scope: str
    revision: int
    idle_at: int | None


@attrs.frozen
class Removal:
    """Everything of a kind in a conversation, or in one of its sessions, that is to be deleted.

    Attributes:
        lanes: For entries of a session, the lanes of those that wait for it.
    """

    kind: str
    encoded: str
    conversation_key: int
    session_key: int | None
    lanes: Lanes = ("", "")


@attrs.define(kw_only=True)
class Work:
    """One run of a step.

    Attributes:
        known: What is known; the step changes it, so it serves one run.
        now: The time of the call, in microseconds.
        numbers: Where new numbers come from.
        likely: Names that are in use in all likelihood, so that they are looked up first.
        assumed: What has to be looked up to tell that claims, message ids and other names, of
            which nothing was known, are free as the step was told.
        before: Records that were changed, as they were.
        created: The numbers of sessions that were created.
        moved_claims: Claims that were taken or given up.
        scopes: The revisions that the answer relies on, by scope.
        newest: The lookups of newest sessions that it relies on.
        free_claims: The claims that it relies on being free.
        free_messages: The message ids that it relies on being free, and their conversations.
        freed_messages: The message ids that are free because the step deletes their rows.
        open_counts: The counts of open entries that it relies on, by conversation.
        removals: What is deleted without having been read.
        released_runs: The sessions and tickets of runs whose ended entries forget their claims.
        last_token: The highest fencing token that the step was given, 0 without one.
    """

    known: Known
    now: int
    numbers: Numbers
    likely: frozenset[NewestOf] = _NONE
    assumed: list[Look] = attrs.field(factory=list)
    before: dict[Place, Any] = attrs.field(factory=dict)
    created: set[int] = attrs.field(factory=set)
    moved_claims: set[str] = attrs.field(factory=set)
    scopes: dict[str, int] = attrs.field(factory=dict)
    newest: dict[NewestOf, int | None] = attrs.field(factory=dict)
    free_claims: set[str] = attrs.field(factory=set)
    free_messages: dict[tuple[int, str], str] = attrs.field(factory=dict)
    freed_messages: set[tuple[int, str]] = attrs.field(factory=set)
    open_counts: dict[str, int] = attrs.field(factory=dict)
    removals: list[Removal] = attrs.field(factory=list)
    released_runs: set[tuple[int, str]] = attrs.field(factory=set)
    last_token: int = 0

    def note(self, place: Place, before: object) -> None:
        """Remember a record as it was before its first change."""
        self.before.setdefault(place, before)

    def lock(self, lock_key: str, *, with_line: bool = False) -> LockPart:
        """Return what is known of a lock, and rely on it."""
        part = self.known.locks.get(lock_key)
        if part is None or (with_line and not part.has_line):
            raise Miss(LineLook(lock_key=lock_key))
        self.scopes[part.scope] = part.revision
        return part

    def conversation(self, encoded: str) -> ConversationPart:
        """Return what is known of a conversation, and rely on it."""
        part = self.known.conversations.get(encoded)
        if part is None or not part.is_found:
            raise Miss(ConversationLook(encoded))
        self.scopes[part.scope] = part.revision
        return part

    def value(self, home: str, name: str) -> ValuePart:
        """Return what is known of a value, and rely on it."""
        scope = value_scope(home, name)
        part = self.known.values.get(scope)
        if part is None:
            raise Miss(ValueLook(home, name))
        self.scopes[f"value:{scope}"] = part.revision
        self.scopes[values_scope(home)] = self.known.revisions[values_scope(home)]
        return part

    def conversation_of(self, key: int) -> ConversationPart:
        """Return what is known of a conversation by its number, and rely on it."""
        return self.conversation(self.place_of(key).encoded)

    def place_of(self, key: int) -> ConversationPart:
        """Return a conversation that was looked up or has a session that was, and rely on it."""
        for part in self.known.conversations.values():
            record = part.record
            if (record is not None and record.key == key) or any(
                session.conversation_key == key for session in part.sessions.values()
            ):
                self.scopes[part.scope] = part.revision
                return part
        raise KeyError(key)

    def home_of(self, session_key: int) -> ConversationPart | None:
        """Return the conversation that has the rows of a session, and rely on it."""
        if session_key not in self.known.homes:
            raise Miss(SessionLook(key=session_key))
        encoded = self.known.homes[session_key]
        if encoded is None:
            return None
        part = self.known.conversations[encoded]
        self.scopes[part.scope] = part.revision
        return part
