"""Holds: what a write keeps others from changing, where writes run beside each other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from vitehub_chat.model.keys import encode_key
from vitehub_chat.state.records import EntryRecord
from vitehub_chat.state.sql.driver import Statement
from vitehub_chat.state.sql.known import is_open
from vitehub_chat.state.sql.scratch.work import Change, Raise, Work
from vitehub_chat.state.sql.texts import Texts

_SHARED: Final = "values:"
"""Scopes that many writes rely on and few raise: only kept from being raised."""


def make_hold(
    texts: Texts,
    work: Work,
    changes: Iterable[Change],
    relied: Mapping[str, int],
    raises: Iterable[Raise],
    *,
    at: int,
    nonce: str,
) -> Statement:
    """Return a statement that locks what a write relies on and raises what it changes.

    It notes the write and refuses it if a scope has another revision than it relies on. What
    stands for the names of sessions and for the open entries of a conversation has no revision
    of its own, and is locked by whoever relies on them or changes them.
    """
    raised = {each.scope: each for each in raises}
    held = {*relied, *raised, *_subjects(work, changes)}
    scopes = [_wanted(scope, relied.get(scope), raised.get(scope)) for scope in held]
    return texts["writes.hold"], {"scopes": json.dumps(scopes), "at": at, "nonce": nonce}


def _wanted(scope: str, revision: int | None, following: Raise | None) -> Mapping[str, object]:
    return {
        "scope": scope,
        "revision": revision,
        "next": None if following is None else following.revision,
        "idle_at": None if following is None else following.idle_at,
        "is_shared": following is None and scope.startswith(_SHARED),
    }


def _subjects(work: Work, changes: Iterable[Change]) -> Iterator[str]:
    """Yield what stands for the names and the open entries that are relied on or changed."""
    for _, scope, name in work.newest:
        yield _name(scope, name)
    for (kind, _, _), before, after in changes:
        record = before if after is None else after
        if kind == "session" and None in (before, after):
            yield _name(record.scope, record.base)
            yield _name(record.scope, record.session_id)
        if kind == "entry" and _is_open(before) != _is_open(after):
            yield f"conversation:{record.conversation}"


def _name(scope: str, name: str | None) -> str:
    return f"name:{encode_key(scope, name)}"


def _is_open(entry: EntryRecord | None) -> bool:
    return entry is not None and is_open(entry)
