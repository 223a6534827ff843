"""Values: how the protocol writes and reads them."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from vitehub_chat.errors import InputError
from vitehub_chat.state.sql.driver import Value

Row = tuple[Value, ...]
Encoded = dict[str, Any]

_MIN_INTEGER: Final = -(2**63)
_MAX_INTEGER: Final = 2**63 - 1


def encode_value(name: str, value: object) -> Encoded:
    """Return a value of a parameter as the protocol has it; True and False are 1 and 0.

    Raises:
        InputError: An integer of more than 64 bits, a number that is not finite, a text with a
            lone surrogate, or another type.
    """
    if value is None:
        return {"type": "null"}
    if isinstance(value, str):
        return {"type": "text", "value": _check_text(name, value)}
    if isinstance(value, int) and _MIN_INTEGER <= value <= _MAX_INTEGER:
        return {"type": "integer", "value": str(int(value))}
    if isinstance(value, float) and math.isfinite(value):
        return {"type": "float", "value": value}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"type": "blob", "base64": base64.b64encode(value).decode()}
    raise InputError(
        f"{name!r} is no value of the database: {type(value).__name__}",
        hint="allowed are None, text, bytes, finite numbers, and integers of 64 bits",
    )


def decode_row(cells: Sequence[Mapping[str, Any]]) -> Row:
    """Return the values of a row.

    Raises:
        ValueError: A cell is malformed.
        KeyError: A cell is incomplete.
    """
    return tuple(_decode(cell) for cell in cells)


def _decode(cell: Mapping[str, Any]) -> Value:
    kind = cell["type"]
    if kind == "text":
        return str(cell["value"])
    if kind == "integer":
        return int(cell["value"])
    if kind == "null":
        return None
    if kind == "float":
        # What JSON cannot write, infinity, comes as null.
        return None if cell["value"] is None else float(cell["value"])
    if kind == "blob":
        return _decode_blob(cell["base64"])
    raise ValueError(f"no type of a value: {kind!r}")


def _decode_blob(text: str) -> bytes:
    # Servers leave the padding away.
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError("not in base64") from error


def _check_text(name: str, text: str) -> str:
    try:
        _ = text.isascii() or text.encode()
    except UnicodeEncodeError:  # its text shows a part of the value
        raise InputError(f"{name!r} has half of a surrogate pair") from None
    return text
