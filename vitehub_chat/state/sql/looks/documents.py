"""Looking up documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import attrs

from vitehub_chat.model.keys import encode_key
from vitehub_chat.state.records import DocumentKind
from vitehub_chat.state.sql.columns import DOCUMENTS
from vitehub_chat.state.sql.driver import Statement, Value
from vitehub_chat.state.sql.known import Known, ValuePart
from vitehub_chat.state.sql.looks.look import Answers, Asking
from vitehub_chat.state.tables import DocumentQuery


@attrs.frozen
class ValueLook:
    """The value of a key, with the revisions of its own scope and of that for all in its home."""

    rank: ClassVar[int] = 0
    home: str
    name: str

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        values: dict[str, Value] = {**attrs.asdict(self), "kind": "value", "now": asking.now}
        scopes = (f"value:{value_scope(self.home, self.name)}", values_scope(self.home))
        revision = asking.texts["scopes.revision"]
        return [
            (asking.texts["documents.get"], values),
            *((revision, {"scope": scope}) for scope in scopes),
        ]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        documents, own, every = answers
        found = DOCUMENTS.all(map(tuple, documents))
        part = ValuePart(int(own[0][0] or 0), found[0] if found else None)
        known.values[value_scope(self.home, self.name)] = part
        known.revisions[values_scope(self.home)] = int(every[0][0] or 0)


@attrs.frozen
class DocumentLook:
    """A document of a conversation by its name."""

    rank: ClassVar[int] = 1
    encoded: str
    kind: DocumentKind
    name: str

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        values: dict[str, Value] = {
            "home": self.encoded,
            "kind": self.kind,
            "name": self.name,
            "now": asking.now,
        }
        return [(asking.texts["documents.get"], values)]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered; the conversation was looked up before."""
        found = DOCUMENTS.all(map(tuple, answers[0]))
        part = known.conversations[self.encoded]
        part.documents[(self.kind, self.name)] = found[0] if found else None


@attrs.frozen
class NumberedLook:
    """Documents of one kind by their numbers."""

    rank: ClassVar[int] = 1
    query: DocumentQuery

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        text = asking.texts[f"documents.numbered_{self.query.order}"]
        return [(text, attrs.asdict(self.query))]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        known.numbered[self.query] = tuple(DOCUMENTS.all(map(tuple, answers[0])))


@attrs.frozen
class AsideLook:
    """Rows of all conversations that were put aside."""

    rank: ClassVar[int] = 0
    after: tuple[str, str, str]
    limit: int

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        home, kind, name = self.after
        values: dict[str, Value] = {"home": home, "kind": kind, "name": name, "limit": self.limit}
        return [(asking.texts["documents.put_aside"], values)]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        known.put_aside[(self.after, self.limit)] = tuple(DOCUMENTS.all(map(tuple, answers[0])))


@attrs.frozen(kw_only=True)
class NewestDocumentLook:
    """The newest document of a kind in a session.

    Attributes:
        session_key: The number of the session; None is the newest one of `session_name`.
        session_by: Whether that is an `id` in the conversation or a `base` in a scope.
        session_scope: That scope.
    """

    rank: ClassVar[int] = 2
    encoded: str
    kind: DocumentKind
    session_key: int | None = None
    session_name: str | None = None
    session_by: Literal["base", "id"] = "id"
    session_scope: str | None = None

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        values: dict[str, Value] = {
            **attrs.asdict(self),
            "session_by": self.session_by if self.session_key is None else None,
            "now": asking.now,
        }
        return [(asking.texts["loads.newest_document"], values)]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered; the conversation and its session were looked up before."""
        part = known.conversations[self.encoded]
        key = self.session_key
        if key is None and self.session_by == "base":
            key = known.newest.get(("base", self.session_scope or "", self.session_name))
        elif key is None:
            key = part.by_id.get(self.session_name)
        if key is not None:
            found = DOCUMENTS.all(map(tuple, answers[0]))
            part.newest_documents[(self.kind, key)] = found[0] if found else None


@attrs.frozen
class DocumentCountsLook:
    """How many documents a home has of each kind, or a session in it."""

    rank: ClassVar[int] = 0
    home: str
    session_key: int | None

    def statements(self, asking: Asking, /) -> Sequence[Statement]:
        """Return what to ask."""
        scope = "conversation" if self.session_key is None else "session"
        values = {"home": self.home, "session_key": self.session_key, "now": asking.now}
        return [
            (asking.texts[f"documents.count_{scope}"], values),
            (asking.texts["scopes.revision"], {"scope": values_scope(self.home)}),
        ]

    def learn(self, known: Known, answers: Answers, /) -> None:
        """Note what was answered."""
        counts, every = answers
        found = {str(kind): int(count or 0) for kind, count in counts}
        known.document_counts[(self.home, self.session_key)] = found
        known.revisions[values_scope(self.home)] = int(every[0][0] or 0)


def value_scope(home: str, name: str) -> str:
    """Return what names the scope of one value."""
    return encode_key(home, name)


def values_scope(home: str) -> str:
    """Return the scope that is raised when all values of a home are deleted."""
    return f"values:{home}"
