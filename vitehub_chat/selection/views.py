"""Views: what a call would send as the state of the summary is now, and how large that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Decimal
from itertools import accumulate

import attrs

from vitehub_chat.model.messages import Message
from vitehub_chat.model.rolling import Rolling


@attrs.frozen(kw_only=True)
class Piece:
    """A message that may be condensed or left out.

    Attributes:
        message: As the driver gets it.
        size: Its size with the overhead.
        seq: Its number, or None where it is no stored row.
        is_barred: It is being written, or came in after such a one or with this turn.
    """

    message: Message
    size: int
    seq: int | None = None
    is_barred: bool = False


@attrs.frozen(kw_only=True)
class FixedTexts:
    """What the texts around a summary cost.

    Attributes:
        frame: The frame of a summary.
        wrapper: The marks of the current message beside a summary.
        gap: Gives the line that says how many messages are not shown.
        given: All of them together where that was told, or None.
    """

    frame: int
    wrapper: int
    gap: Callable[[int], int]
    given: int | None = None

    def size(self, *, has_summary: bool, not_shown: int) -> int:
        """Return what the texts cost that are used."""
        if not has_summary and not not_shown:
            return 0
        if self.given is not None:
            return self.given
        beside = self.frame + self.wrapper if has_summary else 0
        return beside + (self.gap(not_shown) if not_shown else 0)


@attrs.frozen(kw_only=True)
class Reported:
    """What the model told about the size of a call.

    Attributes:
        tokens: How much everything up to a message and itself took.
        index: Where that message stands among the verbatim ones.
    """

    tokens: int
    index: int


@attrs.frozen(kw_only=True)
class View:
    """What a call would send.

    Attributes:
        rolling: The rolling state, or None where nothing can be condensed.
        verbatim: The messages that may be condensed or left out, in order.
        behind: What comes after them in any case, the current message last.
        fixed: The size of instructions, tools and messages that are sent in any case, but for
            `behind`.
        behind_size: The size of those behind.
        summary_size: The size of the summary, 0 without one.
        texts: What the texts around a summary cost.
        correction: By what estimates are multiplied; 1 in runes.
        system_seqs: The numbers of the system messages, ascending.
        reported: What the model told of an earlier call, or None.
    """

    rolling: Rolling | None
    verbatim: tuple[Piece, ...]
    behind: tuple[Message, ...]
    fixed: int
    behind_size: int
    summary_size: int
    texts: FixedTexts
    correction: Decimal = Decimal(1)
    system_seqs: tuple[int, ...] = ()
    reported: Reported | None = None

    @property
    def messages(self) -> list[Message]:
        """The verbatim messages."""
        return [piece.message for piece in self.verbatim]

    @property
    def used(self) -> int:
        """The size of the call."""
        return self.used_without()(0)

    def used_without(self) -> Callable[[int], int]:
        """Return what gives the size of the call without so many of the oldest messages."""
        totals = [0, *accumulate(piece.size for piece in self.verbatim)]
        has_summary = self.summary_size > 0

        def size(dropped: int) -> int:
            texts = self.texts.size(has_summary=has_summary, not_shown=dropped)
            if self.reported is None:
                left = totals[-1] - totals[dropped]
                return self._scale(self.fixed + self.summary_size + texts + left + self.behind_size)
            line = texts - self.texts.size(has_summary=has_summary, not_shown=0)
            later = totals[-1] - totals[self.reported.index + 1]
            told = self.reported.tokens + self._scale(later + self.behind_size + line)
            return max(told - self._scale(totals[dropped]), 0)

        return size

    def rolled(self, count: int, rolling: Rolling, summary_size: int) -> View:
        """Return the view after the first messages were condensed; reports are void then."""
        return attrs.evolve(
            self,
            rolling=rolling,
            verbatim=self.verbatim[count:],
            summary_size=summary_size,
            reported=None,
        )

    def gain(self, count: int, summary_size: int) -> int:
        """Return by how much smaller the call is with a summary of the first messages."""
        before, after = (
            size + self.texts.size(has_summary=size > 0, not_shown=0)
            for size in (self.summary_size, summary_size)
        )
        return sum(piece.size for piece in self.verbatim[:count]) + before - after

    def _scale(self, size: int) -> int:
        if self.correction == 1:
            return size
        return int((size * self.correction).to_integral_value(rounding=ROUND_CEILING))


def barred_from(seqs: Sequence[int], seq: int | None) -> bool:
    """Tell whether a number is at or behind one of those that nothing may be condensed across."""
    return bool(seqs) and (seq is None or seq >= min(seqs))
