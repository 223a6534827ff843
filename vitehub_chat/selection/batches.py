"""Batches: which of the oldest messages are condensed next."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from vitehub_chat.model.messages import Message
from vitehub_chat.model.units import find_waiting, split_units


def choose_batch(
    verbatim: Sequence[Message],
    behind: Sequence[Message],
    *,
    wanted: int,
    room: int,
    pending: Collection[int] = (),
) -> int:
    """Return how many messages from the head are condensed next; 0 for none.

    Whole units are taken until there are `wanted` messages or more, but never more than `room`. A
    unit with a tool call that may still be answered, or with an answer that is being written, ends
    the batch.

    Args:
        verbatim: The messages that are not condensed yet, without those of the system.
        behind: What comes after them; the current message is among it.
        wanted: How many are enough.
        room: How many may be taken.
        pending: Indices of the answers that are being written.
    """
    calls = find_waiting([*verbatim, *behind]).calls
    taken = 0
    for unit in split_units(verbatim):
        if taken >= wanted or unit.stop > room:
            break
        if any(index in calls or index in pending for index in unit):
            break
        taken = unit.stop
    return taken
