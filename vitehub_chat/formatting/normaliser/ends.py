"""Ends: how a list begins, how it ends, and what stands between a tool and a user."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import attrs

from vitehub_chat.formatting.turns import SyntheticText, Turn
from vitehub_chat.model.parts import TextPart

OPENING: Final = "(conversation continues)"
FILLER: Final = "OK."


def fill_after_results(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Let the assistant say `OK.` between a tool result and what a user says."""
    if not turns:
        return ()
    filler = Turn("assistant", (SyntheticText(FILLER, synthetic="tool_then_user"),))
    filled = [turns[0]]
    for before, turn in pairwise(turns):
        if before.role == "tool" and turn.role == "user":
            filled.append(filler)
        filled.append(turn)
    return tuple(filled)


def let_user_begin(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Let a user say `(conversation continues)` before a leading assistant turn."""
    begin = 1 if turns and turns[0].role == "system" else 0
    if begin == len(turns) or turns[begin].role != "assistant":
        return tuple(turns)
    opening = Turn("user", (SyntheticText(OPENING, synthetic="user_first"),))
    return (*turns[:begin], opening, *turns[begin:])


def trim_end(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Take the trailing white space from the last text of a final assistant turn."""
    if not turns or turns[-1].role != "assistant":
        return tuple(turns)
    parts = list(turns[-1].parts)
    for index in reversed(range(len(parts))):
        part = parts[index]
        if isinstance(part, TextPart):
            parts[index] = attrs.evolve(part, text=part.text.rstrip())
            break
    return (*turns[:-1], attrs.evolve(turns[-1], parts=tuple(parts)))
