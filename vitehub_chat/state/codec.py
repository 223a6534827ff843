"""Codec: stored rows to values and back, in versioned JSON."""

from __future__ import annotations

from typing import Any

from vitehub_chat.errors import StateError
from vitehub_chat.model.clock import from_epoch_us, to_epoch_us
from vitehub_chat.model.json_text import JsonObject, decode_json, encode_json
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import part_to_json
from vitehub_chat.model.requests import RunInfo
from vitehub_chat.model.rows import Row
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.values import NewRow, TurnEnd

VERSION = 1
_UNREADABLE = (ValueError, TypeError, KeyError, RecursionError)


def encode_body(message: Message) -> str:
    """Return parts and metadata of a message as JSON text.

    Raises:
        InputError: A part or a metadata value is not JSON; the error names where.
    """
    parts = [part_to_json(part) for part in message.parts]
    body: dict[str, Any] = {"v": VERSION, "parts": parts}
    if message.metadata:
        body["metadata"] = dict(message.metadata)
    return encode_json(body, "message")


def encode_extra(row: NewRow) -> str | None:
    """Return usage and native payload of a row as JSON text, or None without any."""
    extra: dict[str, Any] = {}
    if row.usage is not None:
        extra["usage"] = dict(row.usage)
    if row.native is not None:
        extra["native"] = dict(row.native)
    return encode_json(extra, "answer") if extra else None


def decode_row(record: RowRecord) -> Row:
    """Return the row that a record holds.

    Raises:
        StateError: The record cannot be read (`corrupt`).
    """
    try:
        body = _decode(record.body)
        extra = decode_json(record.extra) if record.extra else {}
        message = Message(
            record.message_id,
            record.role,
            tuple(body["parts"]),
            body.get("metadata", {}),
            None if record.created_at is None else from_epoch_us(record.created_at),
        )
        return Row(
            message=message,
            seq=record.seq,
            status=record.status,
            session_id=record.session_id,
            turn_no=record.turn_no,
            recorded_at=from_epoch_us(record.recorded_at),
            thread_id=record.thread_id,
            turn_id=record.turn_id,
            author=record.author,
            usage=extra.get("usage"),
            native=extra.get("native"),
            is_shown=record.is_shown,
        )
    except (*_UNREADABLE, AttributeError, OverflowError) as error:
        raise StateError(f"the stored row {record.seq} cannot be read", code="corrupt") from error


def encode_end(end: TurnEnd, *, with_message: bool) -> str:
    """Return the end of a run as JSON text, with the answer itself or only its id."""
    fields: dict[str, Any] = {
        "v": VERSION,
        "status": end.status,
        "finish_reason": end.finish_reason,
        "session_id": end.session_id,
        "run": None if end.run is None else dict(end.run),
        "reason": end.reason,
    }
    if end.message is not None:
        fields["message_id"] = end.message.id
        if with_message:
            fields["role"] = end.message.role
            fields["body"] = encode_body(end.message)
            created = end.message.created_at
            fields["created_at"] = None if created is None else to_epoch_us(created)
    return encode_json(fields, "result")


def decode_end(text: str) -> tuple[TurnEnd, str | None]:
    """Return the end of a run, and the id of an answer that is stored as a row."""
    fields = _decode(text)
    message = None
    if "body" in fields:
        body = _decode(fields["body"])
        created = fields["created_at"]
        message = Message(
            fields["message_id"],
            fields["role"],
            tuple(body["parts"]),
            body.get("metadata", {}),
            None if created is None else from_epoch_us(created),
        )
    end = TurnEnd(
        status=fields["status"],
        finish_reason=fields["finish_reason"],
        session_id=fields["session_id"],
        run=fields["run"],
        reason=fields["reason"],
        message=message,
    )
    return end, None if "body" in fields else fields.get("message_id")


def run_to_json(run: RunInfo) -> JsonObject:
    """Return run information as a JSON object."""
    return {
        "tenant_id": run.tenant_id,
        "channel_id": run.channel_id,
        "thread_id": run.thread_id,
        "run_id": run.run_id,
        "message_id": run.message_id,
        "origin": run.origin,
        "annotations": dict(run.annotations),
    }


def run_from_json(fields: JsonObject) -> RunInfo:
    """Return the run information of a JSON object that `run_to_json` made."""
    return RunInfo(**fields)


def _decode(text: str) -> dict[str, Any]:
    body = decode_json(text)
    if not isinstance(body, dict) or body.get("v") != VERSION:
        raise ValueError("not a body of version 1")
    return body
