"""JSON text: how values are written down, and text made safe to write."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from vitehub_chat.errors import InputError

Json = Any
"""A JSON value: None, bool, int, finite float, text, or lists and text-keyed mappings of these."""

JsonObject = Mapping[str, Any]
"""A JSON object."""

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_MAX_DEPTH = 20
_MAX_REPR = 2000
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


def jsonable(value: object) -> Json:
    """Return a value of somebody else's code as JSON: itself if it is, else as close as can be.

    Objects become their text, non-finite numbers and circular values too.
    """
    try:
        _encoder.encode(value)
    except (TypeError, ValueError, RecursionError):
        return _closest_json(value, depth=0)
    return value


def decode_json(text: str) -> Json:
    """Return the value of JSON text, with lone surrogates replaced.

    Raises:
        ValueError: It is none.
    """
    value = json.loads(text)
    if "\\u" in text and _ESCAPED_SURROGATE.search(text) is not None:
        return json.loads(replace_surrogates(json.dumps(value, ensure_ascii=False)))
    return value


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


def _closest_json(value: object, depth: int) -> Json:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth < _MAX_DEPTH and isinstance(value, Mapping):
        return {str(key): _closest_json(item, depth + 1) for key, item in value.items()}
    if depth < _MAX_DEPTH and isinstance(value, list | tuple | set | frozenset):
        return [_closest_json(item, depth + 1) for item in value]
    return repr(value)[:_MAX_REPR]


def _blame(value: object, path: str, depth: int = 0) -> str:
    """Find the path of the first value that does not encode, at most `_MAX_DEPTH` levels down."""
    if depth < _MAX_DEPTH and isinstance(value, Mapping | list | tuple):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in items:
            try:
                _encoder.encode(item)
            except (TypeError, ValueError, RecursionError):
                where = f"{path}.{key}" if isinstance(value, Mapping) else f"{path}[{key}]"
                return _blame(item, where, depth + 1)
    return path
