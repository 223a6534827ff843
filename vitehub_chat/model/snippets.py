"""Snippets: the part of a text in which the words of a query were found."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from vitehub_chat.model.folding import fold_text

SNIPPET_LENGTH: Final = 300
"""How many characters a snippet has at most, marks included."""

MARK: Final = "**"
"""What stands before and behind every match."""

_CUT: Final = "…"
_LEAD: Final = 60
"""How many characters are shown before the first match."""

Span = tuple[int, int]


def count_matches(text: str, words: Sequence[str]) -> int:
    """Count how often folded words occur in a text, apart from each other."""
    folded = fold_text(text)
    return sum(folded.count(word) for word in words)


def make_snippet(text: str, words: Sequence[str]) -> str:
    """Return the part of a text around its first match with folded words, on one line.

    Matches are marked. A text without any is cut off behind its beginning.
    """
    line = " ".join(text.split())
    spans = find_matches(line, words)
    whole = _mark(line, spans, 0, len(line))
    if len(whole) <= SNIPPET_LENGTH:
        return whole
    first = spans[0][0] if spans else 0
    begin = max(min(first - _LEAD, len(line) - SNIPPET_LENGTH), 0)
    lead = _CUT if begin else ""
    room = SNIPPET_LENGTH - len(lead)
    rest = _mark(line, spans, begin, len(line))
    return lead + (rest if len(rest) <= room else _cut(line, spans, begin, room - len(_CUT)))


def find_matches(text: str, words: Sequence[str]) -> list[Span]:
    """Return where folded words are in a text, ascending; what overlaps is one place.

    A character of which only a part is found counts as found.
    """
    folded, starts = _fold_with_places(text)
    found: list[Span] = []
    for word in words:
        at = folded.find(word)
        while at >= 0:
            found.append((starts[at], starts[at + len(word) - 1] + 1))
            at = folded.find(word, at + len(word))
    return _joined(sorted(found))


def _fold_with_places(text: str) -> tuple[str, Sequence[int]]:
    """Return a folded text, and of each of its characters the place in the text it comes from."""
    folded = fold_text(text)
    if len(folded) == len(text):  # none becomes less than one
        return folded, range(len(text))
    places = [place for place, each in enumerate(text) for _ in fold_text(each)]
    return folded, places


def _joined(spans: Sequence[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _cut(line: str, spans: Sequence[Span], begin: int, room: int) -> str:
    """Return so much of a line that it has at most `room` characters with its marks."""
    end = begin + room
    while len(marked := _mark(line, spans, begin, end)) > room:
        end -= len(marked) - room
    return marked + _CUT


def _mark(line: str, spans: Sequence[Span], begin: int, end: int) -> str:
    """Return a part of a line with marks around what was found in it."""
    inside = [(max(a, begin), min(b, end)) for a, b in spans if a < end and b > begin]
    edges = [begin, *(edge for span in inside for edge in span), end]
    pieces = [line[a:b] for a, b in pairwise(edges)]
    return "".join(
        f"{MARK}{piece}{MARK}" if number % 2 else piece for number, piece in enumerate(pieces)
    )
