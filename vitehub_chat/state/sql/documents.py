"""The table of documents, in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from vitehub_chat.state.records import DocumentKind, DocumentRecord
from vitehub_chat.state.sql.columns import DOCUMENTS
from vitehub_chat.state.sql.mapping import Statements
from vitehub_chat.state.tables import DocumentQuery


class SqlDocuments:
    """Documents by home, kind and name."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    def get(self, home: str, kind: DocumentKind, name: str, now: int, /) -> DocumentRecord | None:
        """Return the document of a name."""
        values = {"home": home, "kind": kind, "name": name, "now": now}
        return DOCUMENTS.one(self._sql.fetch("documents.get", values))

    def newest(
        self, home: str, kind: DocumentKind, session_key: int, now: int, /
    ) -> DocumentRecord | None:
        """Return the document of a session with the highest number, then made last."""
        values = {"home": home, "kind": kind, "session_key": session_key, "now": now}
        return DOCUMENTS.one(self._sql.fetch("documents.newest", values))

    def numbered(self, query: DocumentQuery, /) -> Sequence[DocumentRecord]:
        """Return documents of one kind by their numbers, in the order asked for."""
        return DOCUMENTS.all(
            self._sql.fetch_all(f"documents.numbered_{query.order}", attrs.asdict(query))
        )

    def put_aside(self, after: tuple[str, str, str], limit: int, /) -> Sequence[DocumentRecord]:
        """Return rows of all conversations that were put aside, by home, kind and name."""
        home, kind, name = after
        values = {"home": home, "kind": kind, "name": name, "limit": limit}
        return DOCUMENTS.all(self._sql.fetch_all("documents.put_aside", values))

    def put(self, document: DocumentRecord, /) -> None:
        """Insert a document, or replace the one of its home, kind and name."""
        self._sql.change("documents.put", DOCUMENTS.values_of(document))

    def delete(self, home: str, kind: DocumentKind, name: str, /) -> None:
        """Delete a document; no-op if there is none."""
        self._sql.delete("documents.delete", {"home": home, "kind": kind, "name": name})

    def delete_of(self, home: str, session_key: int | None, now: int, /) -> Mapping[str, int]:
        """Delete all documents of a home, or those of one session, and count them by kind."""
        values = {"home": home, "session_key": session_key, "now": now}
        scope = "conversation" if session_key is None else "session"
        counts: dict[str, int] = dict(self._sql.fetch_all(f"documents.count_{scope}", values))
        self._sql.delete(f"documents.delete_{scope}", values)
        return counts
