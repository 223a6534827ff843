"""JSON text: how values are written down, and text made safe to write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vitehub_chat.errors import InputError

Json = Any
"""A JSON value: None, bool, int, finite float, text, or lists and text-keyed mappings of these."""

JsonObject = Mapping[str, Any]
"""A JSON object."""

_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode_json(value: object, path: str) -> str:
    """Return compact JSON text, without ASCII escapes and with lone surrogates replaced.

    Raises:
        InputError: A value below `path` is not JSON; the error names where, not what.
    """
    try:
        text = _encoder.encode(value)
    except (TypeError, ValueError, RecursionError):
        raise InputError(
            "is not a JSON value", path=_blame(value, path), hint="use JSON types only"
        ) from None
    return replace_surrogates(text)


def decode_json(text: str) -> Json:
    """Return the value of JSON text; raises `ValueError` when it is none."""
    return json.loads(text)


def replace_surrogates(text: str) -> str:
    """Return the text with every half of a surrogate pair that stands alone replaced by U+FFFD.

    Pairs that stand as two characters become the one character they mean. Text without any is
    returned as it is.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _blame(value: object, path: str, depth: int = 0) -> str:
    """Find the path of the first value that does not encode, at most 20 levels down."""
    if depth < 20 and isinstance(value, Mapping | list | tuple):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in items:
            try:
                _encoder.encode(item)
            except (TypeError, ValueError, RecursionError):
                where = f"{path}.{key}" if isinstance(value, Mapping) else f"{path}[{key}]"
                return _blame(item, where, depth + 1)
    return path
