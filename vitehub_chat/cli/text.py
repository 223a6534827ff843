"""Text: what others wrote, made safe for a terminal."""

from __future__ import annotations

import json
import unicodedata
from typing import Any, Final

_ESCAPED: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS: Final = frozenset("\u200c\u200d")
"""Invisible, but scripts and emoji are misspelt without them."""

_LAYOUT: Final = frozenset("\n\t")


def safe_line(text: str) -> str:
    """Return a text on one line, with every character that could steer a terminal escaped.

    These are control characters, marks that change the direction of text, line and paragraph
    separators, and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(map(_escape, text))


def safe_text(text: str) -> str:
    """Return a text like `safe_line`, but with its lines and tabs."""
    if text.isprintable():
        return text
    return "".join(each if each in _LAYOUT else _escape(each) for each in text)


def shorten(text: str, most: int) -> str:
    """Return at most so many characters of a text, with a mark that says how many are missing."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… [{len(text) - most} more characters]"


def json_line(value: Any) -> str:
    """Return a value as JSON on one line, in ASCII."""
    return _ascii_json(value, None)


def json_document(value: Any) -> str:
    """Return a value as indented JSON, in ASCII."""
    return _ascii_json(value, 2)


def _ascii_json(value: Any, indent: int | None) -> str:
    try:
        text = json.dumps(value, ensure_ascii=True, allow_nan=False, indent=indent)
    except RecursionError:
        # Somebody else stored what is deeper than we would. `--version` needs click alone.
        from vitehub_chat.model.json_text import jsonable  # noqa: PLC0415

        text = json.dumps(jsonable(value), ensure_ascii=True, allow_nan=False, indent=indent)
    return text.replace("\x7f", "\\u007f")  # the one control character that JSON leaves


def _escape(character: str) -> str:
    if character in _JOINERS or unicodedata.category(character) not in _ESCAPED:
        return character
    return character.encode("unicode_escape").decode("ascii")
