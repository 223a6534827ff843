"""Looking up conversations, their sessions and summaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import attrs

from vitehub_chat.state.records import SessionRecord
from vitehub_chat.state.sql.columns import CONVERSATIONS, ROWS, SESSIONS, SUMMARIES, as_values
from vitehub_chat.state.sql.driver import Columns, Statement, Value
from vitehub_chat.state.sql.known import ConversationPart, Known, NewestOf
from vitehub_chat.state.sql.looks.locks import learn_locks
from vitehub_chat.state.sql.looks.look import Answers, Asking
from vitehub_chat.state.tables import SessionQuery

_MIN = -(2**63)
_MAX = 2**63 - 1


@attrs.frozen
class ConversationLook:
    """A conversation, the answers that are not complete in it, and their locks."""

    rank: ClassVar[int] = 0
    encoded: str

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        values: dict[str, Value] = {"encoded": self.encoded}
        names = ("loads.place", "loads.pending", "loads.locks_of_pending")
        return [(asking.texts[name], values) for name in names]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        places, pending, locks = answers
        revision, *found = places[0]
        part = known.add_conversation(self.encoded, int(revision or 0))
        part.is_found = True
        part.record = None if found[0] is None else CONVERSATIONS.one(tuple(found))
        learn_locks(known, locks)
        for row in ROWS.all(map(tuple, pending)):
            part.put_row(row)


@attrs.frozen
class NewestLook:
    """The newest session of an id or of a base in a scope."""

    rank: ClassVar[int] = 0
    of: NewestOf

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        kind, scope, name = self.of
        values: dict[str, Value] = {"scope": scope, "session_id": name, "base": name}
        return [(asking.texts[f"loads.newest_by_{kind}"], values)]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        found = _learn_homes(known, answers[0])
        known.newest[self.of] = found[0].key if found else None


@attrs.frozen(kw_only=True)
class SessionLook:
    """A session by its number, or the one that an entry was recorded in."""

    rank: ClassVar[int] = 0
    key: int | None = None
    ticket_id: str | None = None

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        name = "loads.session" if self.ticket_id is None else "loads.session_of_ticket"
        return [(asking.texts[name], attrs.asdict(self))]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        _learn_homes(known, answers[0])
        if self.key is not None:
            known.homes.setdefault(self.key, None)


@attrs.frozen
class SessionOfLook:
    """The newest session of an id whose rows a conversation has."""

    rank: ClassVar[int] = 1
    encoded: str
    session_id: str | None

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        return [(asking.texts["loads.session_of_conversation"], attrs.asdict(self))]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered; the conversation was looked up before."""
        part = known.conversations[self.encoded]
        found = _learn_sessions(known, part, answers[0])
        part.by_id[self.session_id] = found[0].key if found else None


@attrs.frozen
class SessionsLook:
    """Every session whose rows a conversation has."""

    rank: ClassVar[int] = 1
    encoded: str

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        return [(asking.texts["loads.sessions_of_conversation"], attrs.asdict(self))]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered; the conversation was looked up before."""
        part = known.conversations[self.encoded]
        _learn_sessions(known, part, answers[0])
        part.has_sessions = True


@attrs.frozen
class ListLook:
    """A list of sessions; the conversation that it is narrowed to is named by its key."""

    rank: ClassVar[int] = 0
    query: SessionQuery
    encoded: str | None

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        query = self.query
        after_at, after_key = query.after or (_MAX, _MAX)
        values: dict[str, Any] = {
            "encoded": self.encoded,
            "tenant": query.tenant,
            "agent": query.agent,
            "user_key": query.user_key,
            "since": _MIN if query.updated_since is None else query.updated_since,
            "after_at": after_at,
            "after_key": after_key,
            "limit": query.limit,
        }
        return [(asking.texts.by_encoded[self._name()], as_values(values))]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        found = SESSIONS.all(map(tuple, answers[0]))
        known.lists[(self.query, self.encoded)] = tuple(found)

    def _name(self) -> str:
        """Return the statement that starts from the narrowest index."""
        if self.encoded is not None:
            return "sessions.list_conversation"
        if self.query.user_key is not None:
            return "sessions.list_user"
        return "sessions.list_tenant" if self.query.agent is None else "sessions.list_agent"


@attrs.frozen
class SummaryLook:
    """The manual summary of a conversation (0) or of one of its sessions."""

    rank: ClassVar[int] = 1
    encoded: str
    session_key: int

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        return [(asking.texts["loads.summary"], attrs.asdict(self))]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered; the conversation was looked up before."""
        found = SUMMARIES.all(map(tuple, answers[0]))
        part = known.conversations[self.encoded]
        part.summaries[self.session_key] = found[0] if found else None


@attrs.frozen
class RevisionLook:
    """The revision of a scope."""

    rank: ClassVar[int] = 0
    scope: str

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        return [(asking.texts["scopes.revision"], attrs.asdict(self))]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        known.revisions[self.scope] = int(answers[0][0][0] or 0)


@attrs.frozen
class WriteLook:
    """Whether a write has happened."""

    rank: ClassVar[int] = 0
    at: int
    nonce: str

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        return [(asking.texts["writes.exists"], attrs.asdict(self))]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        if answers[0]:
            known.written.add(self.nonce)


def _learn_homes(known: Known, rows: Iterable[Columns]) -> list[SessionRecord]:
    """Note sessions that come with the revisions of their conversations."""
    found = []
    for *columns, revision in rows:
        session = SESSIONS.all([tuple(columns)])[0]
        known.add_session(session, int(revision or 0))
        found.append(session)
    return found


def _learn_sessions(
    known: Known, part: ConversationPart, rows: Iterable[Columns]
) -> list[SessionRecord]:
    found = SESSIONS.all(map(tuple, rows))
    for session in found:
        known.add_session(session, part.revision)
    return found
