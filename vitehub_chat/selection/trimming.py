"""Trimming: what is left out of one call because it does not fit; what is stored stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from vitehub_chat.model.messages import Message
from vitehub_chat.model.units import split_units


@attrs.frozen
class Trim:
    """What is left out, and what the call uses then.

    Attributes:
        dropped: How many messages from the head are left out.
        used: The size of the rest.
        is_over: It is too large although nothing is left.
    """

    dropped: int
    used: int
    is_over: bool


def trim(verbatim: Sequence[Message], used_without: Callable[[int], int], cap: int) -> Trim:
    """Leave out the oldest units until the rest fits.

    Args:
        verbatim: The messages that may be left out, in order.
        used_without: Gives the size of the call without so many of them.
        cap: What it may be.
    """
    used = used_without(0)
    if used <= cap:
        return Trim(0, used, is_over=False)
    for unit in split_units(verbatim):
        used = used_without(unit.stop)
        if used <= cap:
            return Trim(unit.stop, used, is_over=False)
    return Trim(len(verbatim), used, is_over=True)
