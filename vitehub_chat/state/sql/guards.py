"""Guards: what refuses a write when something it relies on has changed meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from vitehub_chat.state.sql.driver import Statement, Value
from vitehub_chat.state.sql.holds import make_hold
from vitehub_chat.state.sql.scratch.work import Change, Raise, Work
from vitehub_chat.state.sql.texts import Texts

Condition = tuple[str, Mapping[str, Value]]

_AT_ONCE: Final = 50
"""Databases limit how deep an expression may be."""

_PARAMETER: Final = re.compile(r"(?<!:):([a-z_]+)\b")


def make_guards(
    texts: Texts,
    work: Work,
    changes: Sequence[Change],
    relied: Mapping[str, int],
    raises: Sequence[Raise],
    *,
    at: int,
    nonce: str,
) -> Iterator[Statement]:
    """Yield what notes a write, refuses it unless all it relies on holds, and raises scopes.

    Args:
        texts: The statements.
        work: The run of the step.
        changes: What it changes.
        relied: The scopes that the write relies on, with their revisions.
        raises: Their next revisions.
        at: The time, in microseconds.
        nonce: What tells this write from all others.
    """
    note: dict[str, Value] = {"at": at, "nonce": nonce}
    others = list(_conditions(work))
    if "writes.hold" in texts.statements:
        yield make_hold(texts, work, changes, relied, raises, at=at, nonce=nonce)
        for start in range(0, len(others), _AT_ONCE):
            yield _assert(texts, "go_on", others[start : start + _AT_ONCE], note)
        return
    conditions = [*_revisions(relied), *others]
    yield _assert(texts, "begin", conditions[:_AT_ONCE], note)
    for start in range(_AT_ONCE, len(conditions), _AT_ONCE):
        yield _assert(texts, "go_on", conditions[start : start + _AT_ONCE], note)
    for each in raises:
        yield texts["scopes.raise"], attrs.asdict(each)


def _assert(
    texts: Texts, name: str, conditions: Iterable[Condition], note: Mapping[str, Value]
) -> Statement:
    values = dict(note)
    parts = []
    for number, (condition, fields) in enumerate(conditions):
        text = _PARAMETER.sub(rf":\1_{number}", texts[f"writes.{condition}"])
        parts.append(f"({text})")
        values.update({f"{field}_{number}": value for field, value in fields.items()})
    text = texts[f"writes.{name}"].replace(":conditions", " AND ".join(parts) or "1")
    return text, values


def _revisions(relied: Mapping[str, int]) -> Iterator[Condition]:
    for scope, revision in relied.items():
        yield "scope_is", {"scope": scope, "revision": revision}


def _conditions(work: Work) -> Iterator[Condition]:
    for (kind, scope, name), key in work.newest.items():
        yield f"newest_by_{kind}_is", {"scope": scope, "name": name, "key": key}
    # Indexes refuse a second holder of a claim and a second row of a message id by themselves.
    for claim_key in work.free_claims:
        if work.known.claims.get(claim_key) is None:
            yield "claim_is_free", {"claim_key": claim_key}
    for (key, message_id), encoded in work.free_messages.items():
        if not _is_inserted(work, encoded, message_id):
            yield "message_is_free", {"conversation_key": key, "message_id": message_id}
    for encoded, count in work.open_counts.items():
        yield "open_entries_are", {"conversation": encoded, "count": count}


def _is_inserted(work: Work, encoded: str, message_id: str) -> bool:
    seq = work.known.conversations[encoded].seqs.get(message_id)
    return seq is not None and work.before.get(("row", encoded, seq), "") is None
