"""System notes: the system slot, and system messages that come later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from vitehub_chat.formatting.cleaning import system_note
from vitehub_chat.formatting.profiles import Profile
from vitehub_chat.formatting.turns import BLANK_LINE, Turn
from vitehub_chat.model.parts import TextPart


def place_system(turns: Sequence[Turn], profile: Profile) -> tuple[Turn, ...]:
    """Join the leading system messages to one; leave later ones at their place.

    Where a provider takes none later, they become notes that a user says.
    """
    leading = list(takewhile(lambda turn: turn.role == "system", turns))
    text = BLANK_LINE.join(turn.text for turn in leading)
    slot = (Turn("system", (TextPart(text),)),) if leading else ()
    return (*slot, *_later(turns[len(leading) :], profile))


def _later(turns: Sequence[Turn], profile: Profile) -> Iterator[Turn]:
    for turn in turns:
        if turn.role != "system":
            yield turn
        elif profile.later_system == "note":
            yield Turn("user", (TextPart(system_note(turn.text)),))
        else:
            yield Turn("system", (TextPart(turn.text),))
