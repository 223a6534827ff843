"""The table of sessions, in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice, product

import attrs

from vitehub_chat.state.memory.indexed import Counter, Index, Indexed, Journal
from vitehub_chat.state.records import SessionRecord
from vitehub_chat.state.tables import SessionQuery


class MemorySessions:
    """Sessions by number."""

    def __init__(self, journal: Journal) -> None:
        self._keys = Counter(journal)
        self._ids = _by_age(lambda session: [(session.scope, session.session_id)])
        self._bases = _by_age(lambda session: [(session.scope, session.base)])
        self._conversations = _by_age(lambda session: [session.conversation_key])
        self._ids_of_conversations = _by_age(
            lambda session: [(session.conversation_key, session.session_id)]
        )
        self._lists: Index[int, SessionRecord] = Index(_queries, _activity)
        self._sessions: Indexed[int, SessionRecord] = Indexed(
            journal,
            self._ids,
            self._bases,
            self._conversations,
            self._ids_of_conversations,
            self._lists,
        )

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: int, /) -> SessionRecord | None:
        """Return a session by its number."""
        return self._sessions.get(key)

    def by_id(self, scope: str, session_id: str, /) -> SessionRecord | None:
        """Return the session of that id in a scope."""
        return self._sessions.get(self._ids.last((scope, session_id)))

    def latest(self, scope: str, base: str | None, /) -> SessionRecord | None:
        """Return the newest session of a base in a scope."""
        return self._sessions.get(self._bases.last((scope, base)))

    def of_conversation(
        self, conversation_key: int, session_id: str | None, /
    ) -> SessionRecord | None:
        """Return the newest session of that id whose rows a conversation has."""
        group = (conversation_key, session_id)
        return self._sessions.get(self._ids_of_conversations.last(group))

    def insert(self, session: SessionRecord, /) -> SessionRecord:
        """Insert a session and return it with its number."""
        numbered = attrs.evolve(session, key=self._keys.next())
        self._sessions.put(numbered.key, numbered)
        return numbered

    def update(self, session: SessionRecord, /) -> None:
        """Replace a session by its number."""
        self._sessions.replace(session.key, session)

    def list(self, query: SessionQuery, /) -> Sequence[SessionRecord]:
        """Return sessions, newest activity first, of equal activity the newest one first."""
        keys = self._lists.between(
            (query.tenant, query.agent, query.user_key, query.conversation_key),
            above=None if query.updated_since is None else (query.updated_since, 0),
            below=query.after,
            descending=True,
        )
        return self._sessions.all(islice(keys, query.limit))

    def all_of(self, conversation_key: int, /) -> Sequence[SessionRecord]:
        """Return every session whose rows a conversation has."""
        return self._sessions.all(self._conversations.keys(conversation_key))

    def delete(self, key: int, /) -> None:
        """Delete a session."""
        self._sessions.remove(key)


def _by_age(groups: Callable[[SessionRecord], Iterable[Hashable]]) -> Index[int, SessionRecord]:
    return Index(groups, lambda session: session.key)


def _activity(session: SessionRecord) -> tuple[int, int]:
    return session.last_message_at, session.key


def _queries(session: SessionRecord) -> Iterable[Hashable]:
    """Belong to every list that shows it: its tenant's, and each narrowed by what it has."""
    return product(
        [session.tenant],
        dict.fromkeys([None, session.agent]),
        dict.fromkeys([None, session.user_key]),
        [None, session.conversation_key],
    )
