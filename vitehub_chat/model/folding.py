"""Folding: text as it is compared when somebody searches, whatever its case and its forms.

Every character is folded by itself, so what is in a text is in its folded text, too: a search
misses nothing that a comparison character by character would find.
"""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_WORDS: Final = 32
"""How many words of a query are looked for; what comes after them is not."""

_KEPT_CHARACTERS: Final = 8192
_COMPOSED: Final = (("\u1100", "\u11ff"), ("\u3000", "\u30ff"), ("\uac00", "\ud7a3"))
"""Scripts whose characters stay whole: a part of one is another character."""


class _Folds(dict[int, str]):
    """The folded forms of characters by their code points, found when they are asked for."""

    def __missing__(self, point: int) -> str:
        folded = fold_character(chr(point))
        if len(self) < _KEPT_CHARACTERS:
            self[point] = folded
        return folded


def fold_character(character: str) -> str:
    """Return what one character is compared as; of a control character a space."""
    if unicodedata.category(character) in {"Cc", "Cs"}:
        return " "
    is_whole = any(first <= character <= last for first, last in _COMPOSED)
    plain = unicodedata.normalize("NFKC" if is_whole else "NFKD", character)
    return plain.casefold()


_folds: Final = _Folds()


def fold_text(text: str) -> str:
    """Return a text as it is compared: `Straße` and `STRASSE` are one."""
    return text.translate(_folds)


def split_query(query: str) -> tuple[str, ...]:
    """Return the folded words of a query, each once; no character means anything but itself."""
    return tuple(dict.fromkeys(fold_text(query).split()))[:MAX_WORDS]


def contains_all(folded: str, words: tuple[str, ...]) -> bool:
    """Tell whether all words occur in a folded text, wherever a word of it begins."""
    return all(word in folded for word in words)
