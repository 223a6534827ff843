"""Key values: JSON values under keys, with an expiry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

import attrs

from vitehub_chat.errors import InputError, StateError
from vitehub_chat.model.clock import in_us
from vitehub_chat.model.json_text import Json, decode_json, encode_json
from vitehub_chat.model.keys import ConversationKey, check_id
from vitehub_chat.state.options import MAX_RETENTION
from vitehub_chat.state.records import DocumentRecord
from vitehub_chat.state.tables import Transaction


@attrs.frozen
class ValuePlace:
    """Where a value is; `home` is the encoded key of its scope, empty without one."""

    home: str
    name: str


def place_of(key: object, scope: ConversationKey | None) -> ValuePlace:
    """Return the place of a key.

    Raises:
        InputError: It is no text, is empty, too long, or has characters that no id may have.
    """
    if not isinstance(key, str) or not key:
        raise InputError("must be text that is not empty", path="key")
    return ValuePlace("" if scope is None else scope.encode(), check_id(key, "key"))


def encode_value(value: Json, key: str) -> str:
    """Return a value as JSON text.

    Raises:
        InputError: It is not JSON; the error names the key, not the value.
    """
    return encode_json(value, f"values[{key!r}]")


def expiry_of(ttl: object, now: int) -> int | None:
    """Return when what is written now is gone; None for None.

    Raises:
        InputError: The duration is not above 0, or too long for a database.
    """
    if ttl is None:
        return None
    if not isinstance(ttl, timedelta) or not timedelta(0) < ttl <= MAX_RETENTION:
        raise InputError(
            f"must be a timedelta above 0 of at most {MAX_RETENTION.days} days",
            path="ttl",
            hint="None keeps it until it is deleted",
        )
    return now + in_us(ttl)


def get(tx: Transaction, place: ValuePlace, now: int) -> Json:
    """Carry out `KeyValue.get`."""
    found = _find(tx, place, now)
    return None if found is None else _decode(found)


def put(tx: Transaction, place: ValuePlace, body: str, expires_at: int | None, now: int) -> None:
    """Carry out `KeyValue.set`."""
    tx.documents.put(
        DocumentRecord(
            home=place.home,
            kind="value",
            name=place.name,
            body=body,
            created_at=now,
            expires_at=expires_at,
        )
    )


def put_if_absent(
    tx: Transaction, place: ValuePlace, body: str, expires_at: int | None, now: int
) -> bool:
    """Carry out `KeyValue.set_if_absent`."""
    if _find(tx, place, now) is not None:
        return False
    put(tx, place, body, expires_at, now)
    return True


def put_if_equal(
    tx: Transaction,
    place: ValuePlace,
    expected: str,
    body: str,
    expires_at: int | None,
    now: int,
) -> bool:
    """Carry out `KeyValue.compare_and_set`."""
    if not _is_equal(_find(tx, place, now), expected):
        return False
    put(tx, place, body, expires_at, now)
    return True


def delete(tx: Transaction, place: ValuePlace, now: int) -> bool:
    """Carry out `KeyValue.delete`."""
    if _find(tx, place, now) is None:
        return False
    tx.documents.delete(place.home, "value", place.name)
    return True


def delete_if_equal(tx: Transaction, place: ValuePlace, expected: str, now: int) -> bool:
    """Carry out `KeyValue.compare_and_delete`."""
    return _is_equal(_find(tx, place, now), expected) and delete(tx, place, now)


def append_to_list(
    tx: Transaction,
    place: ValuePlace,
    added: Sequence[Json],
    max_length: int | None,
    expires_at: int | None,
    now: int,
) -> int:
    """Carry out `KeyValue.append_to_list`."""
    items = [*get_list(tx, place, now), *added]
    if max_length is not None:
        items = items[-max_length:]
    put(tx, place, encode_value(items, place.name), expires_at, now)
    return len(items)


def get_list(tx: Transaction, place: ValuePlace, now: int) -> list[Json]:
    """Carry out `KeyValue.get_list`."""
    found = _find(tx, place, now)
    return [] if found is None else _items_of(found)


def pop_from_list(tx: Transaction, place: ValuePlace, now: int) -> Json:
    """Carry out `KeyValue.pop_from_list`."""
    found = _find(tx, place, now)
    items = [] if found is None else _items_of(found)
    if found is None or not items:
        return None
    first, *rest = items
    if rest:
        tx.documents.put(attrs.evolve(found, body=encode_value(rest, place.name)))
    else:
        tx.documents.delete(place.home, "value", place.name)
    return first


def _find(tx: Transaction, place: ValuePlace, now: int) -> DocumentRecord | None:
    return tx.documents.get(place.home, "value", place.name, now)


def _items_of(found: DocumentRecord) -> list[Json]:
    value = _decode(found)
    if not isinstance(value, list):
        raise InputError("holds a value that is no list", path=f"values[{found.name!r}]")
    return value


def _is_equal(found: DocumentRecord | None, expected: str) -> bool:
    return found is not None and _canonical(_decode(found)) == _canonical(decode_json(expected))


def _canonical(value: Json) -> str:
    """Return text that is equal for equal JSON only; to Python true, 1 and 1.0 are equal, too."""
    return json.dumps(value, sort_keys=True)


def _decode(found: DocumentRecord) -> Json:
    try:
        return decode_json(found.body)
    except (ValueError, RecursionError) as error:
        raise StateError(
            f"the stored value of {found.name!r} cannot be read", code="corrupt"
        ) from error
