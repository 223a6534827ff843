"""Guards: what refuses a write when something it relies on has changed meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from vitehub_chat.state.sql.driver import Statement, Value
from vitehub_chat.state.sql.scratch.work import Work
from vitehub_chat.state.sql.texts import Texts

Condition = tuple[str, Mapping[str, Value]]

_AT_ONCE: Final = 50
"""Databases limit how deep an expression may be."""

_PARAMETER: Final = re.compile(r":([a-z_]+)\b")


def make_guards(
    texts: Texts, work: Work, relied: Mapping[str, int], *, at: int, nonce: str
) -> Iterator[Statement]:
    """Yield statements that note a write and refuse it unless all it relies on holds.

    Args:
        texts: The statements.
        work: The run of the step.
        relied: The scopes that the write relies on, with their revisions.
        at: The time, in microseconds.
        nonce: What tells this write from all others.
    """
    conditions = list(_conditions(work, relied))
    for start in range(0, len(conditions) or 1, _AT_ONCE):
        values: dict[str, Value] = {"at": at, "nonce": nonce}
        parts = []
        for number, (name, fields) in enumerate(conditions[start : start + _AT_ONCE]):
            text = _PARAMETER.sub(rf":\1_{number}", texts[f"writes.{name}"])
            parts.append(f"({text})")
            values.update({f"{field}_{number}": value for field, value in fields.items()})
        text = texts["writes.go_on" if start else "writes.begin"]
        yield text.replace(":conditions", " AND ".join(parts) or "1"), values


def _conditions(work: Work, relied: Mapping[str, int]) -> Iterator[Condition]:
    for scope, revision in relied.items():
        yield "scope_is", {"scope": scope, "revision": revision}
    for (kind, scope, name), key in work.newest.items():
        yield f"newest_by_{kind}_is", {"scope": scope, "name": name, "key": key}
    for claim_key in work.free_claims:
        yield "claim_is_free", {"claim_key": claim_key}
    for (key, message_id), encoded in work.free_messages.items():
        # An index refuses a second row of the same id by itself.
        if not _is_inserted(work, encoded, message_id):
            yield "message_is_free", {"conversation_key": key, "message_id": message_id}
    for encoded, count in work.open_counts.items():
        yield "open_entries_are", {"conversation": encoded, "count": count}


def _is_inserted(work: Work, encoded: str, message_id: str) -> bool:
    seq = work.known.conversations[encoded].seqs.get(message_id)
    return seq is not None and work.before.get(("row", encoded, seq), "") is None
