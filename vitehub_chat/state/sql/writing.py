"""Writing: what a step changed as one batch, which is refused if what it relied on has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from vitehub_chat.state.sql.columns import (
    CONVERSATIONS,
    DOCUMENTS,
    ENTRIES,
    LOCKS,
    ROWS,
    SESSIONS,
    SUMMARIES,
    as_values,
    row_id,
    values_of,
    values_of_row,
)
from vitehub_chat.state.sql.driver import Statement, Value
from vitehub_chat.state.sql.guards import make_guards
from vitehub_chat.state.sql.known import Known
from vitehub_chat.state.sql.looks.documents import values_scope
from vitehub_chat.state.sql.mapping import Records
from vitehub_chat.state.sql.scratch.locks import revision_of
from vitehub_chat.state.sql.scratch.work import Change, Place, Raise, Removal, Work
from vitehub_chat.state.sql.texts import Texts

_RECORDS: Final[Mapping[str, Records[Any]]] = {
    "lock": LOCKS,
    "entry": ENTRIES,
    "conversation": CONVERSATIONS,
    "session": SESSIONS,
    "row": ROWS,
    "summary": SUMMARIES,
    "document": DOCUMENTS,
    "value": DOCUMENTS,
}
_INSERTS: Final = {
    "lock": "locks.put",
    "entry": "entries.insert",
    "conversation": "changes.insert_conversation",
    "session": "changes.insert_session",
    "row": "rows.insert",
    "summary": "summaries.put",
    "document": "documents.put",
    "value": "documents.put",
}
_UPDATES: Final = {
    "lock": "locks.put",
    "entry": "entries.update",
    "conversation": "changes.update_conversation",
    "session": "sessions.update",
    "row": "rows.replace",
    "summary": "summaries.put",
    "document": "documents.put",
    "value": "documents.put",
}
_DELETES: Final = {
    "lock": "locks.delete",
    "entry": "entries.delete",
    "session": "sessions.delete",
    "row": "changes.delete_row",
    "document": "documents.delete",
    "value": "documents.delete",
}


@attrs.frozen
class Batch:
    """What to send for one run of a step.

    Attributes:
        at: When it was made; with the nonce it names this write.
        nonce: What tells it from all others.
        revisions: The scopes that it raises, with their new revisions.
        statements: What it does; nothing of it if a condition does not hold.
    """

    at: int
    nonce: str
    revisions: Mapping[str, int]
    statements: Sequence[Statement]


def changes_of(work: Work) -> Sequence[Change]:
    """Return what a step changed."""
    found = ((place, before, _current(work.known, place)) for place, before in work.before.items())
    return [change for change in found if change[1] != change[2]]


def make_batch(
    texts: Texts,
    work: Work,
    *,
    at: int,
    nonce: str,
    fenced: Mapping[str, int],
    is_searched: bool = True,
) -> Batch:
    """Return what to send for a step.

    Args:
        texts: The statements.
        work: The run of the step.
        at: The time, in microseconds.
        nonce: What tells this write from all others.
        fenced: Scopes with their revisions that are raised besides, so that an earlier attempt
            that relied on them cannot be written any more.
        is_searched: Whether the texts of rows are kept for search.
    """
    changes = changes_of(work)
    relied = {**fenced, **work.scopes}
    raised = {_scope_of(place) for place, _, _ in changes} | fenced.keys()
    raised |= {scope for each in work.removals for scope in _scopes_of(each)}
    revisions = {scope: _next(work.known, scope, relied.get(scope, 0)) for scope in raised}
    raises = [_raise(work.known, each, revisions[each], at) for each in sorted(revisions)]
    return Batch(
        at,
        nonce,
        revisions,
        [
            *make_guards(texts, work, changes, relied, raises, at=at, nonce=nonce),
            *(_remove(texts, each) for each in work.removals),
            *(_release(texts, *each) for each in sorted(work.released_runs)),
            *_write(texts, changes, is_searched=is_searched),
        ],
    )


def _scope_of(place: Place) -> str:
    kind, home, _ = place
    if kind == "value":
        return f"value:{home}"
    return f"lock:{home}" if kind in {"lock", "entry"} else f"conversation:{home}"


def _scopes_of(removal: Removal) -> Iterator[str]:
    yield f"conversation:{removal.encoded}"
    if removal.kind == "documents" and removal.session_key is None:
        yield values_scope(removal.encoded)


def _next(known: Known, scope: str, revision: int) -> int:
    """Return the next revision of a scope; that of a lock is never below that of its token."""
    kind, _, key = scope.partition(":")
    part = known.locks.get(key) if kind == "lock" else None
    held = 0 if part is None or part.lock is None else revision_of(part.lock.token)
    return max(revision + 1, held)


def _current(known: Known, place: Place) -> object:
    kind, home, key = place
    if kind == "lock":
        return known.locks[home].lock
    if kind == "entry":
        return known.locks[home].entries.get(str(key))
    if kind == "value":
        return known.values[home].record
    part = known.conversations[home]
    if kind == "conversation":
        return part.record
    tables: Mapping[str, Mapping[Any, object]] = {
        "session": part.sessions,
        "row": part.rows,
        "summary": part.summaries,
        "document": part.documents,
    }
    return tables[kind].get(key)  # pyright: ignore[reportArgumentType]  the kind says what it is


def _raise(known: Known, scope: str, revision: int, at: int) -> Raise:
    kind, _, key = scope.partition(":")
    part = known.locks.get(key) if kind == "lock" else None
    is_idle = kind in {"value", "values"} or (part is not None and part.is_idle)
    return Raise(scope, revision, at if is_idle else None)


def _remove(texts: Texts, removal: Removal) -> Statement:
    key = removal.conversation_key
    scope = "conversation" if removal.session_key is None else "session"
    return texts[f"{removal.kind}.delete_{scope}"], {
        "conversation": removal.encoded,
        "home": removal.encoded,
        "conversation_key": key,
        "session_key": removal.session_key,
        "lane": removal.lanes[0],
        "base_lane": removal.lanes[1],
        "above": row_id(key, 0),
        "below": row_id(key + 1, 0),
    }


def _release(texts: Texts, session_key: int, ticket_id: str) -> Statement:
    values: dict[str, Value] = {"session_key": session_key, "run_ticket_id": ticket_id}
    return texts["entries.release_claims"], values


def _write(texts: Texts, changes: Iterable[Change], *, is_searched: bool) -> Iterator[Statement]:
    """Yield the changes: first what gives up an id or a claim, then what takes one."""
    changes = list(changes)

    def values(kind: str, record: Any) -> Mapping[str, Value]:
        if kind == "row":
            return as_values(values_of_row(record, is_searched=is_searched))
        return values_of(_RECORDS[kind], record)

    for place, before, after in changes:
        if after is None and place[0] in _DELETES:
            yield texts[_DELETES[place[0]]], values(place[0], before)
    for place, before, after in changes:
        if after is not None and before is not None:
            yield texts[_UPDATES[place[0]]], values(place[0], after)
    for place, before, after in changes:
        if before is None:
            yield texts[_INSERTS[place[0]]], values(place[0], after)
