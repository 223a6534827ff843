"""Texts: PostgreSQL stores every character but NUL, so that one is written as two others.

The mark is a control character. JSON text and ids have none, so they are stored as they are.
"""

from __future__ import annotations

from typing import Final

_NUL: Final = "\0"
_MARK: Final = "\x1a"


def escape(text: str) -> str:
    """Return a text without NUL; texts that differ stay different."""
    if _NUL not in text and _MARK not in text:
        return text
    return text.replace(_MARK, _MARK + "s").replace(_NUL, _MARK + "0")


def restore(text: str) -> str:
    """Return the text that `escape` made this of."""
    if _MARK not in text:
        return text
    return text.replace(_MARK + "0", _NUL).replace(_MARK + "s", _MARK)
