"""Clipping: a text cut to a size, at the end of a line or a sentence if one is near."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_SENTENCE_END: Final = re.compile(r"[.!?…](?=\s|\Z)|[。！？｡]")  # noqa: RUF001 - those of other scripts


def clip(text: str, max_size: int, count: Callable[[str], int]) -> str:
    """Return the longest prefix that fits, cut back to its last line or sentence.

    That end counts only if it lies in the second half of the prefix. A text that fits is returned
    as it is.
    """
    if count(text) <= max_size:
        return text
    prefix = text[: _longest(text, max_size, count)]
    end = _last_end(prefix)
    return (prefix[:end] if 2 * end > len(prefix) else prefix).rstrip()


def _longest(text: str, max_size: int, count: Callable[[str], int]) -> int:
    """Return the length of the longest prefix that fits; a longer text never counts less."""
    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if count(text[:middle]) <= max_size:
            fits = middle
        else:
            too_long = middle
    return fits


def _last_end(prefix: str) -> int:
    ends = [found.end() for found in _SENTENCE_END.finditer(prefix)]
    return max(prefix.rfind("\n"), ends[-1] if ends else 0, 0)
