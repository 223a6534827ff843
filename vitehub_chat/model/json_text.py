"""JSON text: how values are written down, and text made safe to write."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, time
from typing import Any

import attrs

from vitehub_chat.errors import InputError

Json = Any
"""A JSON value: None, bool, int, finite float, text, or lists and text-keyed mappings of these."""

JsonObject = Mapping[str, Any]
"""A JSON object."""

MAX_NESTING = 200
"""How many levels deep a message may be; deeper text cannot be read by every reader."""

MAX_WRITTEN = MAX_NESTING + 50
"""How many levels deep other JSON may be, so that there is room for what is put around messages."""

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_MAX_DEPTH = 20
_MAX_TEXT = 2000
_MAX_BITS = 10_000
_MAX_VALUES = 10_000
_ROOM_IN_NESTING = 150
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _read_number(text: str) -> float:
    """Return a finite number; `NaN`, `Infinity` and what is too large for one are no JSON."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return value


_decoder = json.JSONDecoder(parse_float=_read_number, parse_constant=_read_number)


def encode_json(value: object, path: str, most: int = MAX_WRITTEN) -> str:
    """Return compact JSON text, without ASCII escapes and with lone surrogates replaced.

    Raises:
        InputError: A value below `path` is not JSON, or it is nested deeper than `most` levels, too
            deep to be read again everywhere; the error names where, not what.
    """
    try:
        text = _encoder.encode(value)
    except (TypeError, ValueError, RecursionError):
        raise _no_json(value, path) from None
    if _is_deeper(text, most):
        raise InputError(f"is nested deeper than {most} levels", path=path)
    return replace_surrogates(text)


def show_json(value: object, path: str) -> str:
    """Return JSON text like `encode_json` for somebody to read, however deep it is.

    What is stored can always be shown: where it is deeper than can be written at all, as close as
    can be.

    Raises:
        InputError: A value below `path` is not JSON; the error names where, not what.
    """
    try:
        text = _encoder.encode(value)
    except RecursionError:
        text = _encoder.encode(jsonable(value))
    except (TypeError, ValueError):
        raise _no_json(value, path) from None
    return replace_surrogates(text)


def jsonable(value: object) -> Json:
    """Return a value of somebody else's code as JSON: itself if it is, else as close as can be.

    Values that have named fields become objects of these, other ones their text, or where that is
    long the name of their type; very large numbers and what is nested deeper than 20 levels, as
    circular values are, too. Values behind the first 10,000 are left out.
    """
    try:
        text = _encoder.encode(value)
    except (TypeError, ValueError, RecursionError):
        return _closest_json(value, 0, iter(range(_MAX_VALUES)))
    if _is_deeper(text, _ROOM_IN_NESTING):
        return _closest_json(value, 0, iter(range(_MAX_VALUES)))
    return value


def compact_json(value: object) -> str:
    """Return a value of somebody else's code as compact JSON text, not ASCII-escaped.

    Keys stay in their order; what is no JSON comes as `jsonable` makes it.
    """
    try:
        return encode_json(value, "value")
    except InputError:
        return encode_json(jsonable(value), "value")


def decode_json(text: str) -> Json:
    """Return the value of JSON text, with lone surrogates replaced.

    Raises:
        ValueError: It is none.
    """
    value = _read(text)
    if "\\u" in text and _ESCAPED_SURROGATE.search(text) is not None:
        return _decoder.decode(replace_surrogates(json.dumps(value, ensure_ascii=False)))
    return value


def _read(text: str) -> Json:
    try:
        value, end = _decoder.raw_decode(text)
    except ValueError:
        value, end = None, -1
    except RecursionError:
        raise ValueError("nested too deep") from None
    # What was written here has nothing around it; `decode` looks for that, and takes twice as long.
    return value if end == len(text) else _decoder.decode(text)


def _is_deeper(text: str, most: int) -> bool:
    """Tell whether JSON text is nested deeper than so many levels."""
    if text.count("[") + text.count("{") <= most:
        return False
    depth = deepest = 0
    for mark in _BRACKETS.findall(text):
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}":
            depth -= 1
    return deepest > most


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
        is_small = value.bit_length() < _MAX_BITS
        return int(value) if is_small else f"<int of {value.bit_length()} bits>"
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    value = _fields_of(value)
    # Without a bound a value that holds itself twice would double with every level.
    if depth < _MAX_DEPTH and isinstance(value, Mapping | list | tuple | set | frozenset):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        taken = zip(items, budget, strict=False)
        found = [(key, _closest_json(item, depth + 1, budget)) for (key, item), _ in taken]
        if isinstance(value, Mapping):
            return {str(key): item for key, item in found}
        return [item for _, item in found]
    return _safe_text(value)


def _fields_of(value: object) -> object:
    """Return a value that has named fields as a mapping of them, any other as it is."""
    if isinstance(value, type):
        return value
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    kind: Any = type(value)
    if attrs.has(kind):
        return {field.name: getattr(value, field.name) for field in attrs.fields(kind)}
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        try:
            return dump(mode="json")
        except Exception:  # noqa: BLE001 - somebody else's code; its text is better than nothing
            return value
    return value


def _safe_text(value: object) -> str:
    """Return the text of a value, or the name of its type if that is no better."""
    try:
        text = value.isoformat() if isinstance(value, date | time) else repr(value)
    except Exception:  # noqa: BLE001 - somebody else's code; its type is better than nothing
        text = ""
    is_good = text and len(text) <= _MAX_TEXT and not isinstance(value, Mapping | list | tuple)
    return text if is_good else f"<{type(value).__name__}>"


def _no_json(value: object, path: str) -> InputError:
    return InputError("is not a JSON value", path=_blame(value, path), hint="use JSON types only")


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
