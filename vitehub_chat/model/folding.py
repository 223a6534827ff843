"""Folding: text as it is compared when somebody searches, whatever its case and its forms.

Texts that are equal to Unicode, or the same but for case and presentation, fold to the same one.
Accents stand apart from their letters there, so that `e` is in `é`; kana and Hangul stay whole, as
a part of one is another character. Every cluster of characters is folded by itself, so what is in
a text is in its folded text, too: a search misses nothing that a comparison would find.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import groupby
from typing import Final

MAX_WORDS: Final = 32
"""How many words of a query are looked for; what comes after them is not."""

_KEPT_CHARACTERS: Final = 8192
_COMPOSED: Final = (("\u1100", "\u11ff"), ("\u3000", "\u30ff"), ("\uac00", "\ud7a3"))
"""Scripts whose characters stay whole: a part of one is another character."""

_VOWELS, _LAST_JAMO = "\u1160", "\u11ff"
"""The letters of Hangul that follow another one in a syllable."""

_DOTLESS_I, _DOTTED_I = "\u0131", "i\u0307"

_MANY_MARKS: Final = 32
"""Of so many marks on one letter no language has half; twice as many in a row are sorted here."""


class _Folds(dict[int, str]):
    """The folded forms of characters by their code points, found when they are asked for."""

    def __missing__(self, point: int) -> str:
        folded = _fold_character(chr(point))
        if len(self) < _KEPT_CHARACTERS:
            self[point] = folded
        return folded


def _fold_character(character: str) -> str:
    """Return what a composed character is compared as; of a control character a space."""
    if unicodedata.category(character) in {"Cc", "Cs"}:
        return " "
    is_whole = any(first <= character <= last for first, last in _COMPOSED)
    plain = unicodedata.normalize("NFKC" if is_whole else "NFKD", character)
    return plain.casefold().replace(_DOTLESS_I, "i")


_folds: Final = _Folds()


def fold_text(text: str) -> str:
    """Return a text as it is compared: `Straße` and `STRASSE` are one.

    An `i` is the same with and without its dot, in `İstanbul` as in `ISTANBUL`.
    """
    if text.isascii():
        return text.translate(_folds)
    if _has_many_marks(text):
        text = _sort_marks(text)
    composed = unicodedata.normalize("NFKC", text)
    return composed.translate(_folds).replace(_DOTTED_I, "i")


def _has_many_marks(text: str) -> bool:
    """Tell whether a text has very many marks in a row; of most characters it looks at one in 32.

    Twice as many in a row as lie between two of these always count.
    """
    step = _MANY_MARKS
    return any(
        joins(text[at]) and all(map(joins, text[at : at + step]))
        for at in range(0, len(text) - step + 1, step)
    )


def _sort_marks(text: str) -> str:
    """Return a text decomposed, in the canonical order.

    Unicode's own tables would do it in a time that grows with the square of the marks on a letter.
    """
    plain = "".join(unicodedata.normalize("NFKD", character) for character in text)
    pieces = groupby(plain, key=lambda character: unicodedata.combining(character) != 0)
    return "".join(
        "".join(sorted(piece, key=unicodedata.combining) if is_mark else piece)
        for is_mark, piece in pieces
    )


def split_clusters(text: str) -> Iterator[str]:
    """Yield the pieces of a text that fold by themselves, each a character with what joins it."""
    begin = 0
    for place in range(1, len(text)):
        if not joins(text[place]):
            yield text[begin:place]
            begin = place
    if text:
        yield text[begin:]


def joins(character: str) -> bool:
    """Tell whether a character may become one with what is before it."""
    if character.isascii():
        return False
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.combining(first) != 0 or _VOWELS <= first <= _LAST_JAMO


def split_query(query: str) -> tuple[str, ...]:
    """Return the folded words of a query, each once; no character means anything but itself."""
    return tuple(dict.fromkeys(fold_text(query).split()))[:MAX_WORDS]


def contains_all(folded: str, words: tuple[str, ...]) -> bool:
    """Tell whether all words occur in a folded text, wherever a word of it begins."""
    return all(word in folded for word in words)
