"""Codec: stored rows to values and back, in versioned JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

import attrs

from vitehub_chat.errors import InputError, StateError
from vitehub_chat.model.clock import from_epoch_us, to_epoch_us
from vitehub_chat.model.frozen_json import freeze_json
from vitehub_chat.model.json_text import MAX_NESTING, Json, JsonObject, decode_json, encode_json
from vitehub_chat.model.messages import Message, fill_message
from vitehub_chat.model.parts import part_to_json
from vitehub_chat.model.requests import RunInfo
from vitehub_chat.model.rows import Row, RowStatus
from vitehub_chat.state.records import RowRecord, keep_decoded
from vitehub_chat.state.values import NewRow, TurnEnd

VERSION = 1
_UNREADABLE = (ValueError, TypeError, KeyError, RecursionError)
_STATUSES = frozenset(get_args(RowStatus))


def encode_body(message: Message) -> str:
    """Return parts and metadata of a message as JSON text.

    Raises:
        InputError: A part is no object, or a part or a metadata value is not JSON; the error names
            where.
    """
    parts = [_part_of(part, index) for index, part in enumerate(message.parts)]
    body: dict[str, Any] = {"v": VERSION, "parts": parts}
    if message.metadata:
        body["metadata"] = dict(message.metadata)
    return encode_json(body, "message", MAX_NESTING)


def check_text(value: object, path: str) -> None:
    """Refuse what is stored as text and is none.

    Raises:
        InputError: It is neither text nor None.
    """
    if value is not None and not isinstance(value, str):
        raise InputError(f"must be text, not {type(value).__name__}", path=path)


def encode_extra(row: NewRow) -> str | None:
    """Return usage and native payload of a row as JSON text, or None without any."""
    extra: dict[str, Any] = {}
    if row.usage is not None:
        extra["usage"] = dict(row.usage)
    if row.native is not None:
        extra["native"] = dict(row.native)
    return encode_json(extra, "answer", MAX_NESTING) if extra else None


def decode_row(record: RowRecord, cursor: str = "") -> Row:
    """Return the row that a record holds, with its position for pages if it is in one.

    A record that is kept is decoded once. Its row is shared, so the JSON in it refuses changes.

    Raises:
        StateError: The record cannot be read (`corrupt`).
    """
    try:
        row = record.decoded
    except AttributeError:
        return _row_of(record, cursor, _as_it_is)
    if row is None:
        row = _row_of(record, "", freeze_json)
        keep_decoded(record, row)
    return attrs.evolve(row, cursor=cursor) if cursor else row


def _row_of(record: RowRecord, cursor: str, finish: Callable[[Json], Json]) -> Row:
    """Decode a record; `finish` is applied to all JSON in it."""
    try:
        _check_intact(record)
        body = _decode(record.body)
        extra = decode_json(record.extra) if record.extra else {}
        message = fill_message(
            record.message_id,
            record.role,
            tuple(map(finish, body["parts"])),
            finish(body.get("metadata", {})),
            None if record.created_at is None else from_epoch_us(record.created_at),
        )
        return Row(
            message=message,
            seq=record.seq,
            status=record.status,
            session_id=record.session_id,
            turn_no=record.turn_no,
            cursor=cursor,
            recorded_at=from_epoch_us(record.recorded_at),
            thread_id=record.thread_id,
            turn_id=record.turn_id,
            author=record.author,
            usage=finish(extra.get("usage")),
            native=finish(extra.get("native")),
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
    """Return the end of a run, and the id of an answer that is stored as a row.

    Raises:
        StateError: The text cannot be read (`corrupt`).
    """
    try:
        return _end_of(text)
    except (*_UNREADABLE, AttributeError, OverflowError) as error:
        raise StateError("how a turn ended cannot be read", code="corrupt") from error


def _end_of(text: str) -> tuple[TurnEnd, str | None]:
    check_intact(text)
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


def check_intact(*texts: str | None) -> None:
    """Refuse text that was no UTF-8 where it is stored.

    Raises:
        ValueError: One of them was not.
    """
    for text in texts:
        if text is not None and not text.isascii():
            text.encode()


def _check_intact(record: RowRecord) -> None:
    check_intact(
        record.body,
        record.extra,
        record.message_id,
        record.role,
        record.session_id,
        record.thread_id,
        record.turn_id,
        record.author,
    )
    if record.status not in _STATUSES:
        raise ValueError("no status")


def _as_it_is(value: Json) -> Json:
    return value


def _part_of(part: object, index: int) -> JsonObject:
    if isinstance(part, Mapping) or attrs.has(type(part)):
        return part_to_json(part)  # type: ignore[arg-type]  # a part, or refused as no JSON
    raise InputError(
        f"must be an object, not {type(part).__name__}", path=f"message.parts[{index}]"
    )


def _decode(text: str) -> dict[str, Any]:
    body = decode_json(text)
    if not isinstance(body, dict) or body.get("v") != VERSION:
        raise ValueError("not a body of version 1")
    parts = body.get("parts", ())
    if not isinstance(parts, list | tuple) or not all(isinstance(part, dict) for part in parts):
        raise TypeError("no list of parts")
    if not isinstance(body.get("metadata", {}), dict):
        raise TypeError("no metadata")
    return body
