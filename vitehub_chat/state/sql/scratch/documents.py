"""The table of documents as a step sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vitehub_chat.state.records import DocumentKind, DocumentRecord
from vitehub_chat.state.sql.known import ConversationPart
from vitehub_chat.state.sql.looks.documents import (
    AsideLook,
    DocumentCountsLook,
    DocumentLook,
    NewestDocumentLook,
    NumberedLook,
    value_scope,
    values_scope,
)
from vitehub_chat.state.sql.looks.look import Miss
from vitehub_chat.state.sql.scratch.work import Removal, Work
from vitehub_chat.state.tables import DocumentQuery


class ScratchDocuments:
    """Documents: values by their keys, all others in their conversations."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def get(self, home: str, kind: DocumentKind, name: str, now: int, /) -> DocumentRecord | None:
        """Return the document of a name."""
        if kind == "value":
            return _live(self._work.value(home, name).record, now)
        part = self._work.conversation(home)
        if (kind, name) not in part.documents:
            raise Miss(DocumentLook(home, kind, name))
        return _live(part.documents[(kind, name)], now)

    def newest(
        self, home: str, kind: DocumentKind, session_key: int, now: int, /
    ) -> DocumentRecord | None:
        """Return the document of a session with the highest number, then made last."""
        part = self._work.conversation(home)
        if session_key in self._work.created:
            part.newest_documents.setdefault((kind, session_key), None)
        if (kind, session_key) not in part.newest_documents:
            raise Miss(NewestDocumentLook(encoded=home, kind=kind, session_key=session_key))
        return _live(part.newest_documents[(kind, session_key)], now)

    def numbered(self, query: DocumentQuery, /) -> Sequence[DocumentRecord]:
        """Return documents of one kind by their numbers, in the order asked for."""
        self._work.conversation(query.home)
        found = self._work.known.numbered.get(query)
        if found is None:
            raise Miss(NumberedLook(query))
        return [each for each in found if _live(each, query.now) is not None]

    def put_aside(self, after: tuple[str, str, str], limit: int, /) -> Sequence[DocumentRecord]:
        """Return rows of all conversations that were put aside, by home, kind and name."""
        found = self._work.known.put_aside.get((after, limit))
        if found is None:
            raise Miss(AsideLook(after, limit))
        return found

    def put(self, document: DocumentRecord, /) -> None:
        """Insert a document, or replace the one of its home, kind and name."""
        home, kind, name = document.home, document.kind, document.name
        if kind == "value":
            value = self._work.value(home, name)
            self._work.note(("value", value_scope(home, name), ""), value.record)
            value.record = document
            return
        part = self._work.conversation(home)
        self._work.note(("document", home, (kind, name)), part.documents.get((kind, name)))
        part.documents[(kind, name)] = document
        _make_newest(part, document)

    def delete(self, home: str, kind: DocumentKind, name: str, /) -> None:
        """Delete a document; no-op if there is none."""
        if kind == "value":
            value = self._work.value(home, name)
            self._work.note(("value", value_scope(home, name), ""), value.record)
            value.record = None
            return
        part = self._work.conversation(home)
        if (kind, name) not in part.documents:
            raise Miss(DocumentLook(home, kind, name))
        found = part.documents[(kind, name)]
        self._work.note(("document", home, (kind, name)), found)
        part.documents[(kind, name)] = None
        if found is not None:
            part.newest_documents.pop((kind, found.session_key), None)

    def delete_of(self, home: str, session_key: int | None, _now: int, /) -> Mapping[str, int]:
        """Delete all documents of a home, or those of one session, and count them by kind."""
        work = self._work
        part = work.conversation(home)
        counts = work.known.document_counts.get((home, session_key))
        if counts is None:
            raise Miss(DocumentCountsLook(home, session_key))
        if counts:
            key = 0 if part.record is None else part.record.key
            work.removals.append(Removal("documents", home, key, session_key))
            if session_key is None:
                work.scopes[values_scope(home)] = work.known.revisions[values_scope(home)]
        return counts


def _make_newest(part: ConversationPart, document: DocumentRecord) -> None:
    place = (document.kind, document.session_key)
    if place not in part.newest_documents:
        return
    newest = part.newest_documents[place]
    if newest is None or newest.name == document.name or _line_of(newest) <= _line_of(document):
        part.newest_documents[place] = document


def _line_of(document: DocumentRecord) -> tuple[int, int]:
    return document.number, document.created_at


def _live(document: DocumentRecord | None, now: int) -> DocumentRecord | None:
    if document is None or (document.expires_at is not None and document.expires_at <= now):
        return None
    return document
