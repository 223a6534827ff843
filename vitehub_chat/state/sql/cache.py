"""Cache: what this process wrote last, to go on from without asking."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from vitehub_chat.model.forking import ForkSafeLock
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.records import keep_decoded
from vitehub_chat.state.sql.known import (
    ConversationPart,
    Known,
    LockPart,
    NewestOf,
    is_open,
    parts_of,
)
from vitehub_chat.state.sql.scratch.work import Work

Part = LockPart | ConversationPart

MAX_PARTS: Final = 1024
MAX_NAMES: Final = 4096
MAX_CHARACTERS: Final = 16_000_000
ROWS_KEPT: Final = 100
DECODED: Final = 4
"""How much more room a text takes with what is decoded of it."""


@attrs.frozen
class _Kept:
    """A part, when it was known to be right, and how many characters it has."""

    part: Part
    at: int
    size: int


class Cache:
    """Parts that this process wrote or looked at lately; threads may share it.

    What is in it may be out of date. Only writes go on from it, and they are refused then.
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._newest: OrderedDict[NewestOf, int | None] = OrderedDict()
        self._homes: dict[int, str] = {}
        self._lock_keys: dict[str, str] = {}
        self._size = 0

    def find(self, needs: Needs, likely: Iterable[NewestOf]) -> Known | None:
        """Return what is known of what a step needs, to be changed; None if too little is."""
        with self._lock:
            known = Known(is_fresh=False)
            for name in self._names_of(needs, likely, known):
                kept = self._kept.get(name)
                if kept is None or kept.at > needs.now:
                    return None
                self._kept.move_to_end(name)
                _add(known, kept.part.copy())
            return known if known.locks or known.conversations else None

    def keep(self, work: Work, revisions: Mapping[str, int]) -> None:
        """Keep what a step left behind, with the new revisions of what it changed."""
        with self._lock:
            for part in parts_of(work.known):
                if part.scope in work.scopes:
                    part.revision = revisions.get(part.scope, part.revision)
                    self._put(part, work.now)
            for name, key in work.known.newest.items():
                self._newest[name] = key
                self._newest.move_to_end(name)
            while len(self._newest) > MAX_NAMES:
                self._newest.popitem(last=False)
            while len(self._kept) > MAX_PARTS or self._size > MAX_CHARACTERS:
                self._drop(next(iter(self._kept)))

    def drop(self, work: Work) -> None:
        """Forget what a step relied on."""
        with self._lock:
            for part in parts_of(work.known):
                self._drop(part.scope)
            for name in work.known.newest:
                self._newest.pop(name, None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            for scope in list(self._kept):
                self._drop(scope)
            self._newest.clear()

    def lock_key_of(self, needs: Needs) -> str | None:
        """Return the lock that a step is about, if that is known."""
        if needs.lock_keys:
            return needs.lock_keys[0]
        return self._lock_keys.get(needs.ticket_id or "")

    def _names_of(self, needs: Needs, likely: Iterable[NewestOf], known: Known) -> Iterator[str]:
        """Yield the scopes of what a step needs; an unknown one for what cannot be told."""
        for lock_key in needs.lock_keys:
            yield f"lock:{lock_key}"
        if needs.ticket_id is not None:
            lock_key = self._lock_keys.get(needs.ticket_id, "")
            yield f"lock:{lock_key}"
            yield from self._homes_of(known.locks[lock_key], needs.ticket_id)
        request = needs.session
        for key in (needs.conversation, None if request is None else request.conversation):
            if key is not None:
                yield f"conversation:{key.encode()}"
        for name in likely:
            if name not in self._newest:
                yield ""
            session_key = known.newest[name] = self._newest[name]
            if session_key is not None:
                yield f"conversation:{self._homes.get(session_key, '')}"

    def _homes_of(self, part: LockPart, ticket_id: str) -> Iterator[str]:
        entry = part.entries.get(ticket_id)
        if entry is None:
            yield ""
        elif entry.session_key is not None:
            yield f"conversation:{self._homes.get(entry.session_key, '')}"

    def _put(self, part: Part, at: int) -> None:
        before = self._kept.get(part.scope)
        if before is not None and before.part.revision > part.revision:
            return
        self._drop(part.scope)
        if isinstance(part, LockPart):
            if not part.has_line:
                return
            part.entries = {t: entry for t, entry in part.entries.items() if is_open(entry)}
            self._lock_keys.update(dict.fromkeys(part.entries, part.lock_key))
        else:
            if not part.is_found or part.record is None:
                return
            _trim(part)
            _keep_decoded(part)
            self._homes.update(dict.fromkeys(part.sessions, part.encoded))
        kept = _Kept(part, at, _size_of(part))
        self._kept[part.scope] = kept
        self._size += kept.size

    def _drop(self, scope: str) -> None:
        kept = self._kept.pop(scope, None)
        if kept is None:
            return
        self._size -= kept.size
        if isinstance(kept.part, LockPart):
            for ticket_id in kept.part.entries:
                self._lock_keys.pop(ticket_id, None)
        else:
            for session_key in kept.part.sessions:
                self._homes.pop(session_key, None)


def _add(known: Known, part: Part) -> None:
    if isinstance(part, LockPart):
        known.locks[part.lock_key] = part
        for entry in part.entries.values():
            known.add_entry(entry)
    else:
        known.conversations[part.encoded] = part
        known.homes.update(dict.fromkeys(part.sessions, part.encoded))


def _trim(part: ConversationPart) -> None:
    """Forget old rows once there are many, and what no turn begins with."""
    part.free_ids.clear()
    part.documents.clear()
    for place in [place for place in part.newest_documents if place[0] != "rolling"]:
        del part.newest_documents[place]
    if len(part.rows) <= 2 * ROWS_KEPT:
        return
    cut = sorted(part.rows)[-ROWS_KEPT]
    for row in [row for seq, row in part.rows.items() if seq < cut and row.status != "pending"]:
        part.drop_row(row)
    part.coverage.forget_below(cut - 1)


def _keep_decoded(part: ConversationPart) -> None:
    """Let rows be decoded once, as long as they are kept."""
    for row in part.rows.values():
        if not hasattr(row, "decoded"):
            keep_decoded(row, None)


def _size_of(part: Part) -> int:
    if isinstance(part, LockPart):
        return 200 + sum(200 + len(entry.payload or "") for entry in part.entries.values())
    rows, summaries = part.rows.values(), part.summaries.values()
    documents = part.newest_documents.values()
    return (
        500
        + sum(300 + DECODED * (len(row.body) + len(row.extra or "")) for row in rows)
        + sum(len(summary.text) for summary in summaries if summary is not None)
        + sum(300 + len(document.body) for document in documents if document is not None)
    )
