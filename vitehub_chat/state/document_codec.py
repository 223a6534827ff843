"""Document codec: plans and rolling summaries to JSON text and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import attrs

from vitehub_chat.errors import StateError
from vitehub_chat.model.clock import from_epoch_us, to_epoch_us
from vitehub_chat.model.json_text import decode_json, encode_json
from vitehub_chat.model.plans import AnsweredBy, PlanSummary, TurnPlan
from vitehub_chat.model.results import ContextBudget, SelectionEntry
from vitehub_chat.model.rolling import Checkpoint, PendingFlush, Rolling
from vitehub_chat.model.selections import KEPT
from vitehub_chat.state.codec import check_intact
from vitehub_chat.state.records import DocumentRecord, SessionRecord

T = TypeVar("T")
VERSION = 1
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)


def encode_plan(plan: TurnPlan) -> str:
    """Return a plan as JSON text; its turn is its name."""
    budget, summary = plan.context_budget, plan.summary
    return _encode(
        {
            "session_id": plan.session_id,
            "run_id": plan.run_id,
            "status": plan.status,
            "answered_by": attrs.asdict(plan.answered_by),
            "created_at": to_epoch_us(plan.created_at),
            "summary": None if summary is None else attrs.asdict(summary),
            "entries": [_entry_to_json(entry) for entry in plan.entries],
            "left_out": plan.left_out,
            "trimmed": plan.trimmed,
            "context_budget": None if budget is None else budget.to_json(),
        }
    )


def decode_plan(record: DocumentRecord) -> TurnPlan:
    """Return the plan that a document holds.

    Raises:
        StateError: It cannot be read (`corrupt`).
    """
    return _read(record, lambda fields: _plan_of(record.name, fields))


def encode_rolling(rolling: Rolling) -> str:
    """Return the rolling state of a session as JSON text."""
    fields = attrs.asdict(rolling)
    del fields["session_key"], fields["generation"]
    return _encode({**fields, "created_at": _from_time(rolling.created_at)})


def decode_rolling(record: DocumentRecord | None, session: SessionRecord) -> Rolling:
    """Return the rolling state that a document holds; without one that of a new session.

    Raises:
        StateError: It cannot be read (`corrupt`).
    """
    fresh = Rolling(session_key=session.key, generation=session.generation)
    return fresh if record is None else _read(record, lambda fields: _rolling_of(fields, fresh))


def encode_checkpoints(checkpoints: Sequence[Checkpoint]) -> str:
    """Return the checkpoints of a session as JSON text."""
    found = [
        {**attrs.asdict(each), "created_at": to_epoch_us(each.created_at)} for each in checkpoints
    ]
    return _encode({"checkpoints": found})


def decode_checkpoints(record: DocumentRecord | None) -> tuple[Checkpoint, ...]:
    """Return the checkpoints that a document holds, ascending; none without one.

    Raises:
        StateError: They cannot be read (`corrupt`).
    """
    return () if record is None else _read(record, _checkpoints_of)


def _entry_to_json(entry: SelectionEntry) -> list[Any]:
    return [entry.message_id, entry.seq, entry.role, entry.reason, entry.tokens]


def _entry_of(fields: Sequence[Any]) -> SelectionEntry:
    message_id, seq, role, reason, tokens = fields
    return SelectionEntry(message_id, seq, role, reason in KEPT, reason, tokens)


def _plan_of(turn_id: str, fields: Mapping[str, Any]) -> TurnPlan:
    summary, budget = fields["summary"], fields["context_budget"]
    return TurnPlan(
        turn_id=turn_id,
        session_id=fields["session_id"],
        run_id=fields["run_id"],
        status=fields["status"],
        answered_by=AnsweredBy(**fields["answered_by"]),
        created_at=from_epoch_us(fields["created_at"]),
        summary=None if summary is None else PlanSummary(**summary),
        entries=tuple(map(_entry_of, fields["entries"])),
        left_out=fields["left_out"],
        trimmed=fields["trimmed"],
        context_budget=None if budget is None else ContextBudget(**budget),
    )


def _rolling_of(fields: Mapping[str, Any], fresh: Rolling) -> Rolling:
    kept = {name: value for name, value in fields.items() if name != "v"}
    pending, created = kept.pop("pending"), kept.pop("created_at")
    return attrs.evolve(
        fresh,
        **{**kept, "system_seqs": tuple(kept.get("system_seqs", ()))},
        pending=None if pending is None else PendingFlush(**pending),
        created_at=None if created is None else from_epoch_us(created),
    )


def _checkpoints_of(fields: Mapping[str, Any]) -> tuple[Checkpoint, ...]:
    return tuple(
        Checkpoint(**{**each, "created_at": from_epoch_us(each["created_at"])})
        for each in fields["checkpoints"]
    )


def _from_time(time: datetime | None) -> int | None:
    return None if time is None else to_epoch_us(time)


def _encode(fields: Mapping[str, Any]) -> str:
    return encode_json({"v": VERSION, **fields}, "document")


def _read(record: DocumentRecord, read: Callable[[Mapping[str, Any]], T]) -> T:
    try:
        check_intact(record.body)
        fields = decode_json(record.body)
        if not isinstance(fields, dict) or fields.get("v") != VERSION:
            raise ValueError("not a document of version 1")
        return read(fields)
    except _UNREADABLE as error:
        raise StateError(
            f"the stored {record.kind} {record.name!r} cannot be read", code="corrupt"
        ) from error
