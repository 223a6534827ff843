"""Snippets: the part of a text in which the words of a query were found."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from vitehub_chat.model.folding import fold_text, joins, split_clusters

SNIPPET_LENGTH: Final = 300
"""How many characters a snippet has at most, marks included."""

MARK: Final = "**"
"""What stands before and behind every match."""

_CUT: Final = "…"
_LEAD: Final = 60
"""How many characters are shown before the first match."""

_BLOCK: Final = 4096
"""So much of a text is folded at once while a place in it is looked for."""

_MOST_JOINED: Final = 3
"""How many characters may be one in the folded text: the letters of a syllable of Hangul."""

Span = tuple[int, int]


def count_matches(text: str, words: Sequence[str]) -> int:
    """Count how often folded words occur in a text, apart from each other."""
    folded = fold_text(text)
    return sum(folded.count(word) for word in words)


def make_snippet(text: str, words: Sequence[str]) -> str:
    """Return the part of a text around its first match with folded words, on one line.

    Matches are marked. A text without any is cut off behind its beginning.
    """
    return MARK.join(snippet_pieces(text, words))


def snippet_pieces(text: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return a snippet in pieces of which every second one is a match; marks join them.

    Whatever the text has, it is known what is a match, unlike where marks are looked for.
    """
    line = " ".join(text.split())
    folded = fold_text(line)
    first = min((at for word in words if (at := folded.find(word)) >= 0), default=0)
    place = _place_of(line, first)
    # With one character more than can be shown, it is known whether something is left out.
    reach = SNIPPET_LENGTH + 1 + _MOST_JOINED * max(map(len, words), default=0)
    rest = line[place : place + reach]
    begin = max(place - _lead(rest, words), 0)
    while begin < place and joins(line[begin]):
        begin += 1
    return _shorten(line[begin : place + reach], words, is_begun=begin > 0)


def _lead(rest: str, words: Sequence[str]) -> int:
    """Return how many characters are shown before a rest that begins with the first match.

    So many that the match still fits, and as many as the rest leaves free.
    """
    spans = find_matches(rest, words, SNIPPET_LENGTH)
    free = SNIPPET_LENGTH - len(_CUT) - _size(rest, spans)
    room = SNIPPET_LENGTH - 2 * len(_CUT) - _size(rest[: spans[0][1]] if spans else "", spans[:1])
    return max(free, min(room, _LEAD) if room >= 0 else _LEAD)


def find_matches(text: str, words: Sequence[str], most: int | None = None) -> list[Span]:
    """Return where folded words are in a text, ascending; what overlaps is one place.

    A character of which only a part is found counts as found, and so does what joins it. With
    `most` only matches that begin within so many characters; an end may be given too early that
    is not among them.
    """
    folded, places = fold_text(text), list(_places(text, most))
    found: list[Span] = []
    for word in words:
        at = folded.find(word)
        while 0 <= at < len(places):
            last = min(at + len(word), len(places)) - 1
            found.append((places[at][0], places[last][1]))
            at = folded.find(word, at + len(word))
    return _joined(sorted(found))


def _place_of(text: str, at: int) -> int:
    """Return where in a text the cluster begins that a character of its folded text comes from."""
    if text.isascii():
        return at
    begin, left = 0, at
    while True:
        end = begin + _BLOCK
        while end < len(text) and joins(text[end]):
            end += 1
        size = len(fold_text(text[begin:end]))
        if size > left or end >= len(text):
            break
        begin, left = end, left - size
    for cluster in split_clusters(text[begin:end]):
        left -= len(fold_text(cluster))
        if left < 0:
            break
        begin += len(cluster)
    return begin


def _places(text: str, most: int | None) -> Iterator[Span]:
    """Yield of each character of a folded text from where in the text it comes.

    With `most` only of those that come from so many characters, and the cluster they end in.
    """
    begin = 0
    for cluster in split_clusters(text):
        end = begin + len(cluster)
        for _ in fold_text(cluster):
            yield begin, end
        begin = end
        if most is not None and begin >= most:
            return


def _joined(spans: Sequence[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _shorten(part: str, words: Sequence[str], *, is_begun: bool) -> tuple[str, ...]:
    """Return the pieces of a part that begins as the snippet does, cut where it has to be.

    `is_begun`: whether something of the line is before it.
    """
    spans = find_matches(part, words, SNIPPET_LENGTH)
    lead = _CUT if is_begun else ""
    room = SNIPPET_LENGTH - len(lead)
    if _size(part, spans) <= room:
        return _pieces(part, spans, len(part), lead, "")
    starts = [start for start, _ in spans]

    def size(end: int) -> int:
        return end + 2 * len(MARK) * bisect_left(starts, end)

    end = bisect_right(range(room), room - len(_CUT), key=size) - 1
    return _pieces(part, spans, end, lead, _CUT)


def _size(part: str, spans: Sequence[Span]) -> int:
    """Return how long a part is with its marks."""
    return len(part) + 2 * len(MARK) * len(spans)


def _pieces(part: str, spans: Sequence[Span], end: int, lead: str, tail: str) -> tuple[str, ...]:
    """Return the beginning of a part in pieces, what was found in it apart from the rest."""
    inside = [(start, min(stop, end)) for start, stop in spans if start < end]
    edges = [0, *(edge for span in inside for edge in span), end]
    first, *rest = (part[a:b] for a, b in pairwise(edges))
    pieces = [lead + first, *rest]
    pieces[-1] += tail
    return tuple(pieces)
