"""Media: what a provider cannot be shown is named in a text."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.formatting.options import FormatOptions
from vitehub_chat.formatting.profiles import Profile
from vitehub_chat.formatting.turns import Turn
from vitehub_chat.formatting.wire_media import can_carry
from vitehub_chat.model.parts import MediaPart, ModelPart, TextPart


def name_unshown(
    turns: Sequence[Turn], profile: Profile, options: FormatOptions
) -> tuple[Turn, ...]:
    """Put `[<kind> not shown: <name, else media type>]` in the place of media not to be sent.

    That is media of a kind that is not listed, that the wire shape has no form for, or that stands
    where the provider takes none.
    """
    kinds = profile.media if options.media is None else frozenset(options.media)

    def show(part: ModelPart, *, is_open: bool) -> ModelPart:
        if not isinstance(part, MediaPart):
            return part
        if is_open and part.type in kinds and can_carry(profile.shape, part):
            return part
        return TextPart(f"[{part.type} not shown: {part.name or part.media_type}]")

    return tuple(
        attrs.evolve(
            turn,
            parts=tuple(show(part, is_open=_takes_media(turn, profile)) for part in turn.parts),
        )
        if turn.has_media
        else turn
        for turn in turns
    )


def _takes_media(turn: Turn, profile: Profile) -> bool:
    return turn.role == "user" or (turn.role == "assistant" and profile.assistant_media)
