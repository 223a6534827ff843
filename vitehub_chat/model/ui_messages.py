"""UI messages: reading the JSON form in which clients and channels supply messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from vitehub_chat.errors import InputError
from vitehub_chat.model.clock import read_time
from vitehub_chat.model.keys import check_id
from vitehub_chat.model.messages import NO_METADATA, Message


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
    # Long threads are read again with every turn, and asking whether something is a `Mapping` takes
    # longer than the rest of this: plain dicts, the usual input, are told by their type.
    if type(value) is not dict:
        if isinstance(value, Message):
            _check(value.id, value.role, value.parts, value.metadata, where)
            return value
        if not isinstance(value, Mapping):
            raise InputError("a message is a mapping", path=_path(where))
    message_id, role, parts = value.get("id"), value.get("role"), value.get("parts")
    metadata = value.get("metadata")
    _check(message_id, role, parts, metadata, where)
    return Message(
        message_id or None, role, tuple(parts), metadata or NO_METADATA, _time_of(value, metadata)
    )


def _check(message_id: Any, role: Any, parts: Any, metadata: Any, where: int | str) -> None:
    if not isinstance(role, str):
        raise InputError("needs to be text", path=f"{_path(where)}.role")
    if type(parts) is not list and not isinstance(parts, list | tuple):
        raise InputError("needs to be a list", path=f"{_path(where)}.parts")
    for part in parts:
        if type(part) is not dict:
            _check_parts(parts, where)
            break
    if metadata is not None and type(metadata) is not dict and not isinstance(metadata, Mapping):
        raise InputError("needs to be a mapping", path=f"{_path(where)}.metadata")
    if isinstance(message_id, str):
        if not (message_id.isascii() and message_id.isprintable() and len(message_id) <= 512):
            check_id(message_id, f"{_path(where)}.id")
    elif message_id is not None:
        raise InputError("needs to be text", path=f"{_path(where)}.id")


def _check_parts(parts: Sequence[object], where: int | str) -> None:
    for index, part in enumerate(parts):
        if part is None or isinstance(part, str | int | float | list):
            raise InputError("a part is a mapping", path=f"{_path(where)}.parts[{index}]")


def _path(where: int | str) -> str:
    return f"messages[{where}]" if isinstance(where, int) else where


def _time_of(value: Mapping[str, Any], metadata: Mapping[str, Any] | None) -> datetime | None:
    for key in ("createdAt", "created_at"):
        if (found := value.get(key)) is not None and (time := read_time(found)) is not None:
            return time
    if metadata:
        for key in ("createdAt", "created_at", "updatedAt", "updated_at"):
            if (found := metadata.get(key)) is not None and (time := read_time(found)) is not None:
                return time
    return None
