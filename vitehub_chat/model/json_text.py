"""JSON text: how values are written down, and text made safe to write."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from vitehub_chat.errors import InputError

Json = Any
"""A JSON value: None, bool, int, finite float, text, or lists and text-keyed mappings of these."""

JsonObject = Mapping[str, Any]
"""A JSON object."""

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_MAX_DEPTH = 20
_MAX_REPR = 2000
_MAX_BITS = 10_000
_MAX_VALUES = 10_000
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

    Objects become their text, non-finite and very large numbers too, and so does what is nested
    deeper than 20 levels or behind the first 10,000 values, as circular values are.
    """
    try:
        _encoder.encode(value)
    except (TypeError, ValueError, RecursionError):
        return _closest_json(value, 0, iter(range(_MAX_VALUES)))
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


def _closest_json(value: object, depth: int, budget: Iterator[int]) -> Json:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < _MAX_BITS else hex(value)[:_MAX_REPR]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    # Without a bound a value that holds itself twice would double with every level.
    if depth < _MAX_DEPTH and isinstance(value, Mapping | list | tuple | set | frozenset):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        taken = zip(items, budget, strict=False)
        found = [(key, _closest_json(item, depth + 1, budget)) for (key, item), _ in taken]
        if isinstance(value, Mapping):
            return {str(key): item for key, item in found}
        return [item for _, item in found]
    return _safe_repr(value)


def _safe_repr(value: object) -> str:
    try:
        return repr(value)[:_MAX_REPR]
    except Exception:  # noqa: BLE001 - somebody else's code; its type is better than nothing
        return f"<{type(value).__name__}>"


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
