"""Reasoning: it goes back to its own provider alone, and only whole."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.formatting.options import FormatOptions
from vitehub_chat.formatting.profiles import Profile
from vitehub_chat.formatting.turns import Turn
from vitehub_chat.model.model_messages import has_visible_text
from vitehub_chat.model.parts import ModelPart, ReasoningPart, ToolCallPart


def keep_own_reasoning(
    turns: Sequence[Turn], profile: Profile, options: FormatOptions
) -> tuple[Turn, ...]:
    """Drop reasoning of other providers, and parts that lack what their own provider needs."""
    return tuple(
        attrs.evolve(turn, parts=_kept(turn.parts, profile, options))
        if turn.role == "assistant"
        else turn
        for turn in turns
    )


def _kept(
    parts: Sequence[ModelPart], profile: Profile, options: FormatOptions
) -> tuple[ModelPart, ...]:
    following = (*parts[1:], None)
    return tuple(
        part
        for part, after in zip(parts, following, strict=False)
        if not isinstance(part, ReasoningPart)
        or (
            part.provider in profile.reasoning_providers
            and _is_whole(part, after, profile, options)
        )
    )


def _is_whole(
    part: ReasoningPart, after: ModelPart | None, profile: Profile, options: FormatOptions
) -> bool:
    match profile.reasoning:
        case "thinking":
            return bool(part.signature)
        case "item":
            return part.item is not None
        case "content":
            return options.thinking and has_visible_text(part.text or "")
        case "signature":
            return bool(part.signature) and isinstance(after, ToolCallPart)
        case _:
            return False
