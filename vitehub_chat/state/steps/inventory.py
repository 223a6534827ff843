"""Inventory: every table, and how what somebody said is erased from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from vitehub_chat.state.steps.scopes import Scope, lanes_of
from vitehub_chat.state.tables import Transaction

Eraser = Callable[[Transaction, Scope, int], Mapping[str, int]]
"""Deletes what a scope has in a table, and counts it by store; the time is in microseconds."""


@attrs.frozen(kw_only=True)
class Holding:
    """What a table holds of a conversation or a person.

    Attributes:
        table: Its name, without the prefix.
        by_scope: Erases what a conversation or a session has in it; None if nothing is to be.
        by_person: How that of one person is found, or why there is none.
    """

    table: str
    by_scope: Eraser | None = None
    by_person: str


STORES: Final[Sequence[str]] = ("rows", "summaries", "plans", "values", "entries", "sessions")
"""What receipts count."""

_STORE_OF: Final[Mapping[str, str]] = {
    "rolling": "summaries",
    "plan": "plans",
    "value": "values",
    "hidden": "rows",
    "superseded": "rows",
}
"""What documents count as; those that only belong to another one do not count."""


def _entries(tx: Transaction, scope: Scope, _now: int) -> Mapping[str, int]:
    if scope.is_whole:
        key = 0 if scope.conversation is None else scope.conversation.key
        return {"entries": tx.entries.delete_conversation(scope.encoded, key)}
    session_key = 0 if scope.session is None else scope.session.key
    count = tx.entries.delete_session(scope.encoded, session_key, lanes_of(tx, scope))
    return {"entries": count}


def _rows(tx: Transaction, scope: Scope, _now: int) -> Mapping[str, int]:
    if scope.conversation is None or not scope.exists:
        return {}
    return {"rows": tx.rows.delete(scope.conversation.key, scope.session_key)}


def _summaries(tx: Transaction, scope: Scope, _now: int) -> Mapping[str, int]:
    if scope.conversation is None or not scope.exists:
        return {}
    return {"summaries": tx.summaries.delete(scope.conversation.key, scope.session_key)}


def _documents(tx: Transaction, scope: Scope, now: int) -> Mapping[str, int]:
    if not scope.is_whole and scope.session is None:
        return {}
    counts: dict[str, int] = dict.fromkeys(STORES, 0)
    for kind, count in tx.documents.delete_of(scope.encoded, scope.session_key, now).items():
        if kind in _STORE_OF:
            counts[_STORE_OF[kind]] += count
    return counts


INVENTORY: Final[Sequence[Holding]] = (
    Holding(
        table="entries",
        by_scope=_entries,
        by_person="those of the sessions of the person, and those whose payload names the person",
    ),
    Holding(
        table="rows",
        by_scope=_rows,
        by_person="those of the sessions of the person, and those that the person wrote elsewhere",
    ),
    Holding(
        table="summaries",
        by_scope=_summaries,
        by_person="those of the sessions of the person",
    ),
    Holding(
        table="documents",
        by_scope=_documents,
        by_person="those of the sessions of the person, rows that the person wrote elsewhere and"
        " that were put aside, and rolled summaries that cover such rows",
    ),
    Holding(table="sessions", by_person="by owner; deleted last, so that a rerun finds the rest"),
    Holding(table="conversations", by_person="none: counters, which survive without content"),
    Holding(table="locks", by_person="none: keys, tokens and times, deleted when released"),
    Holding(table="meta", by_person="none: a key of the store"),
    Holding(table="schema", by_person="none: versions of the schema"),
    Holding(table="scopes", by_person="none: revisions by key"),
    Holding(table="counters", by_person="none: numbers"),
    Holding(table="writes", by_person="none: notes of writes, without what they wrote"),
    Holding(table="requests_schema", by_person="none: versions of the schema"),
)
"""All tables; a new one that is not listed here fails the tests."""


def erase_scope(tx: Transaction, scope: Scope, now: int) -> dict[str, int]:
    """Delete everything of a conversation or a session but itself, and count it by store."""
    counts: dict[str, int] = dict.fromkeys(STORES, 0)
    for holding in INVENTORY:
        if holding.by_scope is not None:
            for store, count in holding.by_scope(tx, scope, now).items():
                counts[store] += count
    return counts
