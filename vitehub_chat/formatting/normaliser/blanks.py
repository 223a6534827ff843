"""Blanks: texts without a visible character, and messages that say nothing."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.formatting.turns import Turn
from vitehub_chat.model.model_messages import has_visible_text
from vitehub_chat.model.parts import ReasoningPart, TextPart


def drop_blanks(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Drop blank texts, then messages without text, media, call or result."""
    kept = (_without_blank_texts(turn) for turn in turns)
    return tuple(turn for turn in kept if _says_something(turn))


def _without_blank_texts(turn: Turn) -> Turn:
    parts = tuple(
        part for part in turn.parts if not isinstance(part, TextPart) or has_visible_text(part.text)
    )
    return attrs.evolve(turn, parts=parts)


def _says_something(turn: Turn) -> bool:
    return any(not isinstance(part, ReasoningPart) for part in turn.parts)
