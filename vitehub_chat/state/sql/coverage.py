"""Coverage: of which rows it is known that there are no others between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

Selection = tuple[int | None, bool | None]
"""A session or None for all of them, and whether rows are shown or None for both."""

EDGE: Final = 1 << 32
"""Above every number that a row can have."""


@attrs.frozen
class Span:
    """The numbers strictly between two."""

    above: int
    below: int


class Coverage:
    """Spans of numbers whose rows are all known, by selection."""

    def __init__(self) -> None:
        self._spans: dict[Selection, tuple[Span, ...]] = {}

    def copy(self) -> Coverage:
        """Return another one with the same spans."""
        twin = Coverage()
        twin._spans.update(self._spans)
        return twin

    def add(self, selection: Selection, span: Span) -> None:
        """Note that all rows of a selection in a span are known."""
        others = self._spans.get(selection, ())
        kept = tuple(s for s in others if not (span.above <= s.above and s.below <= span.below))
        self._spans[selection] = (*kept, span)

    def of(self, selection: Selection) -> Iterator[Span]:
        """Yield the spans in which all rows of a selection are known."""
        session_key, is_shown = selection
        for session in dict.fromkeys((session_key, None)):
            for shown in dict.fromkeys((is_shown, None)):
                yield from self._spans.get((session, shown), ())

    def forget_below(self, seq: int) -> None:
        """Forget what is known of the rows up to a number."""
        cut = {
            selection: tuple(
                Span(max(span.above, seq), span.below) for span in spans if span.below > seq + 1
            )
            for selection, spans in self._spans.items()
        }
        self._spans = {selection: spans for selection, spans in cut.items() if spans}
