"""The table of sessions, in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from vitehub_chat.state.records import SessionRecord
from vitehub_chat.state.sql.mapping import Records, Statements, Values
from vitehub_chat.state.tables import SessionQuery

_MIN: Final = -(2**63)
_MAX: Final = 2**63 - 1

_records = Records(SessionRecord, facts=("began_by_new",))


class SqlSessions:
    """Sessions by number."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    def get(self, key: int, /) -> SessionRecord | None:
        """Return a session by its number."""
        return self._one("sessions.get", {"key": key})

    def by_id(self, scope: str, session_id: str, /) -> SessionRecord | None:
        """Return the session of that id in a scope."""
        return self._one("sessions.by_id", {"scope": scope, "session_id": session_id})

    def latest(self, scope: str, base: str | None, /) -> SessionRecord | None:
        """Return the newest session of a base in a scope."""
        return self._one("sessions.latest", {"scope": scope, "base": base})

    def of_conversation(
        self, conversation_key: int, session_id: str | None, /
    ) -> SessionRecord | None:
        """Return the newest session of that id whose rows a conversation has."""
        values = {"conversation_key": conversation_key, "session_id": session_id}
        return self._one("sessions.of_conversation", values)

    def insert(self, session: SessionRecord, /) -> SessionRecord:
        """Insert a session and return it with its number."""
        (key,) = self._sql.fetch_existing("sessions.insert", _records.values_of(session))
        return attrs.evolve(session, key=key)

    def update(self, session: SessionRecord, /) -> None:
        """Replace a session by its number; its conversation, base and id do not change."""
        self._sql.change("sessions.update", _records.values_of(session))

    def list(self, query: SessionQuery, /) -> Sequence[SessionRecord]:
        """Return sessions, newest activity first, of equal activity the newest one first."""
        after_at, after_key = query.after or (_MAX, _MAX)
        values = {
            "tenant": query.tenant,
            "agent": query.agent,
            "user_key": query.user_key,
            "conversation_key": query.conversation_key,
            "since": _MIN if query.updated_since is None else query.updated_since,
            "after_at": after_at,
            "after_key": after_key,
            "limit": query.limit,
        }
        return _records.all(self._sql.fetch_all(_list_of(query), values))

    def all_of(self, conversation_key: int, /) -> Sequence[SessionRecord]:
        """Return every session whose rows a conversation has."""
        values = {"conversation_key": conversation_key}
        return _records.all(self._sql.fetch_all("sessions.all_of", values))

    def delete(self, key: int, /) -> None:
        """Delete a session."""
        self._sql.delete("sessions.delete", {"key": key})

    def _one(self, name: str, values: Values) -> SessionRecord | None:
        return _records.one(self._sql.fetch(name, values))


def _list_of(query: SessionQuery) -> str:
    """Return the statement that starts from the narrowest index."""
    if query.conversation_key is not None:
        return "sessions.list_conversation"
    if query.user_key is not None:
        return "sessions.list_user"
    return "sessions.list_tenant" if query.agent is None else "sessions.list_agent"
