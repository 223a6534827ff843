"""The table of sessions as a step sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

from vitehub_chat.state.records import SessionRecord
from vitehub_chat.state.sql.coverage import EDGE, Span
from vitehub_chat.state.sql.looks.conversations import (
    ListLook,
    NewestLook,
    SessionOfLook,
    SessionsLook,
)
from vitehub_chat.state.sql.looks.look import Miss
from vitehub_chat.state.sql.numbers import ReservationLook
from vitehub_chat.state.sql.scratch.work import Work
from vitehub_chat.state.tables import SessionQuery


class ScratchSessions:
    """Sessions by number."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def get(self, key: int, /) -> SessionRecord | None:
        """Return a session by its number."""
        home = self._work.home_of(key)
        return None if home is None else home.sessions.get(key)

    def by_id(self, scope: str, session_id: str, /) -> SessionRecord | None:
        """Return the session of that id in a scope."""
        return self._newest("id", scope, session_id)

    def latest(self, scope: str, base: str | None, /) -> SessionRecord | None:
        """Return the newest session of a base in a scope."""
        return self._newest("base", scope, base)

    def of_conversation(
        self, conversation_key: int, session_id: str | None, /
    ) -> SessionRecord | None:
        """Return the newest session of that id whose rows a conversation has."""
        part = self._work.conversation_of(conversation_key)
        if session_id not in part.by_id and part.has_sessions:
            keys = [s.key for s in part.sessions.values() if s.session_id == session_id]
            part.by_id[session_id] = max(keys, default=None)
        if session_id not in part.by_id:
            raise Miss(SessionOfLook(part.encoded, session_id))
        key = part.by_id[session_id]
        return None if key is None else part.sessions.get(key)

    def insert(self, session: SessionRecord, /) -> SessionRecord:
        """Insert a session and return it with its number, higher than all it competes with."""
        work = self._work
        part = work.conversation(session.conversation)
        key = work.numbers.take("session", above=max(work.known.homes, default=0))
        if key is None:
            raise Miss(ReservationLook("session", session.conversation))
        numbered = attrs.evolve(session, key=key)
        work.note(("session", part.encoded, key), None)
        work.created.add(key)
        part.sessions[key] = numbered
        part.by_id[session.session_id] = key
        part.coverage.add((key, None), Span(0, EDGE))
        work.known.homes[key] = part.encoded
        work.known.newest[("base", session.scope, session.base)] = key
        work.known.newest[("id", session.scope, session.session_id)] = key
        return numbered

    def update(self, session: SessionRecord, /) -> None:
        """Replace a session by its number; its conversation, base and id do not change."""
        home = self._work.home_of(session.key)
        if home is not None and session.key in home.sessions:
            self._work.note(("session", home.encoded, session.key), home.sessions[session.key])
            home.sessions[session.key] = session

    def list(self, query: SessionQuery, /) -> Sequence[SessionRecord]:
        """Return sessions, newest activity first."""
        encoded = None
        if query.conversation_key is not None:
            encoded = self._work.conversation_of(query.conversation_key).encoded
        wanted = attrs.evolve(query, conversation_key=None)
        found = self._work.known.lists.get((wanted, encoded))
        if found is None:
            raise Miss(ListLook(wanted, encoded))
        return found

    def all_of(self, conversation_key: int, /) -> Sequence[SessionRecord]:
        """Return every session whose rows a conversation has."""
        part = self._work.conversation_of(conversation_key)
        if not part.has_sessions:
            raise Miss(SessionsLook(part.encoded))
        return sorted(part.sessions.values(), key=lambda session: session.key)

    def delete(self, key: int, /) -> None:
        """Delete a session."""
        home = self._work.home_of(key)
        if home is not None and key in home.sessions:
            self._work.note(("session", home.encoded, key), home.sessions.pop(key))

    def _newest(
        self, kind: Literal["id", "base"], scope: str, name: str | None
    ) -> SessionRecord | None:
        work = self._work
        wanted = (kind, scope, name)
        if wanted not in work.known.newest:
            if wanted in work.likely:
                raise Miss(NewestLook(wanted))
            work.assumed.append(NewestLook(wanted))
            work.known.newest[wanted] = None
        key = work.known.newest[wanted]
        if key not in work.created:
            work.newest.setdefault(wanted, key)
        return None if key is None else self.get(key)
