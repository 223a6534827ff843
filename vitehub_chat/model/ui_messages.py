"""UI messages: reading the JSON form in which clients and channels supply messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from vitehub_chat.errors import InputError
from vitehub_chat.model.clock import read_time
from vitehub_chat.model.keys import MAX_ID_LENGTH, check_id
from vitehub_chat.model.messages import NO_METADATA, Message, fill_message


def read_messages(values: Iterable[object]) -> tuple[Message, ...]:
    """Read messages in order; each is a mapping or a `Message`.

    Raises:
        InputError: One of them is no message; the path says which and where.
    """
    return tuple([_read(value, index) for index, value in enumerate(values)])


def read_message(value: object, path: str = "message") -> Message:
    """Read one message from a mapping or a `Message`.

    A message needs `role` (text) and `parts` (a list of mappings). Optional are `id` (text, empty
    is absent), `metadata` (a mapping) and a time; other keys are ignored. Its time is the first
    readable one of `createdAt`, `created_at`, the same two in `metadata`, and `updatedAt`,
    `updated_at` in `metadata`.

    Raises:
        InputError: It is no message.
    """
    return _read(value, path)


def _read(value: Any, where: int | str) -> Message:
    # A long thread is read anew with every turn. Asking whether something is a `Mapping` takes
    # longer than building a message, so the usual forms are told by their exact types.
    if type(value) is not dict:
        if isinstance(value, Message):
            _check(value.id, value.role, value.parts, value.metadata, where)
            return _as_utc(value)
        if not isinstance(value, Mapping):
            raise InputError("a message is a mapping", path=_path(where))
    message_id: Any = value.get("id")
    role: Any = value.get("role")
    parts: Any = value.get("parts")
    metadata: Any = value.get("metadata")
    time: Any = value.get("createdAt")
    is_usual = (
        type(message_id) is str
        and message_id.isprintable()
        and len(message_id) <= MAX_ID_LENGTH
        and type(role) is str
        and role.isascii()
        and type(parts) is list
        and (metadata is None or type(metadata) is dict)
    )
    if not is_usual:
        _check(message_id, role, parts, metadata, where)
    for part in parts:
        if type(part) is not dict:
            _check_parts(parts, where)
            break
    if time is None or (time := read_time(time)) is None:
        time = _other_time(value, metadata)
    return fill_message(message_id or None, role, tuple(parts), metadata or NO_METADATA, time)


def _as_utc(message: Message) -> Message:
    """Return a message whose time is in UTC; one without an offset is."""
    if message.created_at is None or message.created_at.tzinfo is UTC:
        return message
    return attrs.evolve(message, created_at=read_time(message.created_at))


def _check(message_id: Any, role: Any, parts: Any, metadata: Any, where: int | str) -> None:
    if not isinstance(role, str):
        raise InputError("needs to be text", path=f"{_path(where)}.role")
    check_id(role, f"{_path(where)}.role")
    if not isinstance(parts, list | tuple):
        raise InputError(
            "needs to be a list",
            path=f"{_path(where)}.parts",
            hint='a text is [{"type": "text", "text": "..."}]',
        )
    _check_parts(parts, where)
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InputError("needs to be a mapping", path=f"{_path(where)}.metadata")
    if isinstance(message_id, str):
        check_id(message_id, f"{_path(where)}.id")
    elif message_id is not None:
        raise InputError("needs to be text", path=f"{_path(where)}.id")


def _check_parts(parts: Sequence[object], where: int | str) -> None:
    for index, part in enumerate(parts):
        if part is None or isinstance(part, str | int | float | list):
            raise InputError("a part is a mapping", path=f"{_path(where)}.parts[{index}]")


def _path(where: int | str) -> str:
    return f"messages[{where}]" if isinstance(where, int) else where


def _other_time(value: Mapping[str, Any], metadata: Mapping[str, Any] | None) -> datetime | None:
    """Return the first readable time besides that of `createdAt`."""
    if (found := value.get("created_at")) is not None and (time := read_time(found)) is not None:
        return time
    if metadata:
        for key in _METADATA_TIMES:
            if (found := metadata.get(key)) is not None and (time := read_time(found)) is not None:
                return time
    return None


_METADATA_TIMES = ("createdAt", "created_at", "updatedAt", "updated_at")
