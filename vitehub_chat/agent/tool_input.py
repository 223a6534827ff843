"""Tool input: what a model gave a tool, held against the schema that it was told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vitehub_chat.errors import InputError
from vitehub_chat.model.json_text import JsonObject

_TYPES: Final[Mapping[str, type]] = {"string": str, "integer": int}
_MOST: Final = 2**53 - 1
"""The largest integer that every reader of JSON reads exactly."""
_SHOWN: Final = 40
"""How much of an unknown name an error repeats."""


def read_input(given: Mapping[str, Any], schema: JsonObject) -> dict[str, Any]:
    """Return the input of a tool; null is the same as not given.

    Of a schema count `properties` of type `string` and `integer`, `enum`, and `required`.

    Raises:
        InputError: A name is unknown or missing, or a value is not of its type.
    """
    properties = schema["properties"]
    for name in given:
        if name not in properties:
            raise InputError(
                f"there is no {name[:_SHOWN]!r}; known: {', '.join(properties)}", path="input"
            )
    found = {name: value for name, value in given.items() if value is not None}
    for name in schema["required"]:
        if name not in found:
            raise InputError("is missing", path=name)
    for name, value in found.items():
        _check(name, value, properties[name])
    return found


def _check(name: str, value: object, rules: JsonObject) -> None:
    kind = rules["type"]
    if not isinstance(value, _TYPES[kind]) or isinstance(value, bool):
        raise InputError(f"must be of type {kind}, not {type(value).__name__}", path=name)
    if isinstance(value, int) and abs(value) > _MOST:
        raise InputError("is too large", path=name)
    allowed = rules.get("enum")
    if allowed is not None and value not in allowed:
        raise InputError(f"must be one of {', '.join(allowed)}", path=name)
