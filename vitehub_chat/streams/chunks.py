"""Chunks: the JSON objects that streams are made of."""

from __future__ import annotations

from typing import Any

import attrs

from vitehub_chat.model.json_text import Json, replace_surrogates

Chunk = dict[str, Any]
"""One part of a stream: a JSON object with a `type`."""


def readable(chunk: Chunk) -> Chunk:
    """Return a chunk whose texts have no lone surrogates."""
    return {
        key: replace_surrogates(value) if isinstance(value, str) else value
        for key, value in chunk.items()
    }


def join_halves(held: str, text: str) -> tuple[str, str]:
    """Return text that can go out, and the half of a surrogate pair that has to wait for more."""
    text = held + text
    if text and "\ud800" <= text[-1] <= "\udbff":
        return text[:-1], text[-1]
    return text, ""


def facts_of(value: Any) -> Chunk | None:
    """Return the fields of a value that are set, in camelCase, or None for no value."""
    if value is None:
        return None
    pairs = ((field.name, getattr(value, field.name)) for field in attrs.fields(type(value)))
    return {_camel(name): fact for name, fact in pairs if fact is not None}


def present(**facts: Json) -> Chunk:
    """Return the facts that are not None."""
    return {name: fact for name, fact in facts.items() if fact is not None}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
