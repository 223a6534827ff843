"""Texts of cases that are written as a repetition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def expand(value: Any) -> Any:
    """Return a value with every `{"repeat": text, "times": n}` in it replaced by its text."""
    if isinstance(value, Mapping):
        if value.keys() == {"repeat", "times"}:
            return value["repeat"] * value["times"]
        return {key: expand(item) for key, item in value.items()}
    if isinstance(value, list):
        return [expand(item) for item in value]
    return value
