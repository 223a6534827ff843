"""The table of documents, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice

import attrs

from vitehub_chat.state.memory.indexed import Index, Indexed, Journal
from vitehub_chat.state.records import DocumentKind, DocumentRecord
from vitehub_chat.state.tables import DocumentQuery

_Place = tuple[str, str, str]
_ALL_EXPIRING = "expiring"
"""The one group of the documents that have an expiry."""
_ALL_ASIDE = "aside"
"""The one group of the rows that were put aside."""
_LATEST = 1 << 62


class MemoryDocuments:
    """Documents by home, kind and name."""

    def __init__(self, journal: Journal) -> None:
        self._homes: Index[_Place, DocumentRecord] = Index(_of_home, _place_in_line)
        self._series: Index[_Place, DocumentRecord] = Index(_of_series, _place_in_line)
        self._expiring: Index[_Place, DocumentRecord] = Index(_of_expiring, _expiry)
        self._aside: Index[_Place, DocumentRecord] = Index(_of_aside, _place)
        self._documents: Indexed[_Place, DocumentRecord] = Indexed(
            journal, self._homes, self._series, self._expiring, self._aside
        )

    def __len__(self) -> int:
        return len(self._documents)

    def get(self, home: str, kind: DocumentKind, name: str, now: int, /) -> DocumentRecord | None:
        """Return the document of a name."""
        found = self._documents.get((home, kind, name))
        return None if found is None or _is_expired(found, now) else found

    def newest(
        self, home: str, kind: DocumentKind, session_key: int, now: int, /
    ) -> DocumentRecord | None:
        """Return the document of a session with the highest number, then made last."""
        keys = self._series.between((home, kind, session_key), descending=True)
        found = map(self._documents.get, keys)
        live = (each for each in found if each is not None and not _is_expired(each, now))
        return next(live, None)

    def numbered(self, query: DocumentQuery, /) -> Sequence[DocumentRecord]:
        """Return documents of one kind by their numbers, in the order asked for."""
        whole = query.session_key is None
        index = self._homes if whole else self._series
        keys = index.between(
            (query.home, query.kind, query.session_key),
            above=(query.above, _LATEST),
            below=(query.below, -_LATEST),
            descending=query.order == "descending",
        )
        found = map(self._documents.get, keys)
        live = (each for each in found if each is not None and not _is_expired(each, query.now))
        return list(islice(live, query.limit))

    def put_aside(self, after: _Place, limit: int, /) -> Sequence[DocumentRecord]:
        """Return rows of all conversations that were put aside, by home, kind and name."""
        keys = self._aside.between(_ALL_ASIDE, above=after)
        return self._documents.all(islice(keys, limit))

    def put(self, document: DocumentRecord, /) -> None:
        """Insert a document, or replace the one of its home, kind and name."""
        self._documents.put(_place(document), document)

    def delete(self, home: str, kind: DocumentKind, name: str, /) -> None:
        """Delete a document; no-op if there is none."""
        self._documents.remove((home, kind, name))

    def delete_of(self, home: str, session_key: int | None, now: int, /) -> Mapping[str, int]:
        """Delete all documents of a home, or those of one session, and count them by kind."""
        doomed = self._documents.all(self._homes.keys((home, session_key)))
        # The last one first: cutting off the end of a sorted list moves nothing.
        self._delete_all(map(_place, reversed(doomed)))
        return Counter(each.kind for each in doomed if not _is_expired(each, now))

    def purge(self, now: int, limit: int, /) -> int:
        """Delete at most `limit` expired documents."""
        expired = self._expiring.between(_ALL_EXPIRING, below=now + 1)
        return self._delete_all(list(islice(expired, limit)))

    def keep_forever(self) -> None:
        """Let no document but values expire, those already past their time included."""
        for document in self._documents.all(self._expiring.keys(_ALL_EXPIRING)):
            if document.kind != "value":
                self.put(attrs.evolve(document, expires_at=None))

    def apply_retention(self, keep: int | None, now: int) -> None:
        """Give documents but values the expiry of a retention; None is none."""
        for document in self._documents.values():
            expires_at = document.expires_at
            if document.kind == "value":
                continue
            if keep is None and expires_at is not None and expires_at > now:
                self.put(attrs.evolve(document, expires_at=None))
            elif keep is not None and expires_at is None:
                self.put(attrs.evolve(document, expires_at=document.created_at + keep))

    def _delete_all(self, places: Iterable[_Place]) -> int:
        deleted = 0
        for place in places:
            self._documents.remove(place)
            deleted += 1
        return deleted


def _place(document: DocumentRecord) -> _Place:
    return document.home, document.kind, document.name


def _place_in_line(document: DocumentRecord) -> tuple[int, int]:
    return document.number, document.created_at


def _expiry(document: DocumentRecord) -> int | None:
    return document.expires_at


def _is_expired(document: DocumentRecord, now: int) -> bool:
    return document.expires_at is not None and document.expires_at <= now


def _of_home(document: DocumentRecord) -> Iterable[Hashable]:
    """Belong to the home, to the session in it, and to its kind."""
    return [
        (document.home, None),
        (document.home, document.session_key),
        (document.home, document.kind, None),
    ]


def _of_aside(document: DocumentRecord) -> Iterable[Hashable]:
    return [_ALL_ASIDE] if document.kind in {"hidden", "superseded"} else []


def _of_series(document: DocumentRecord) -> Iterable[Hashable]:
    return [(document.home, document.kind, document.session_key)]


def _of_expiring(document: DocumentRecord) -> Iterable[Hashable]:
    return [] if document.expires_at is None else [_ALL_EXPIRING]
