"""Authors: who speaks in a group, in the text or in a field of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import attrs

from vitehub_chat.formatting.cleaning import clean_author, speaker_prefix
from vitehub_chat.formatting.options import FormatOptions
from vitehub_chat.formatting.profiles import Profile
from vitehub_chat.formatting.turns import Turn
from vitehub_chat.model.parts import ModelPart, TextPart

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def name_authors(
    turns: Sequence[Turn], profile: Profile, options: FormatOptions
) -> tuple[Turn, ...]:
    """Name the authors of user messages, where asked for or where the provider has a field.

    A named author leaves `author`, so that naming again changes nothing; one that fits no field
    is left out.
    """
    return tuple(
        turn if turn.author is None else _named(turn, clean_author(turn.author), profile, options)
        for turn in turns
    )


def _named(turn: Turn, author: str, profile: Profile, options: FormatOptions) -> Turn:
    if not author or turn.role != "user":
        return attrs.evolve(turn, author=None)
    if options.speaker_prefix:
        return attrs.evolve(turn, author=None, parts=_prefixed(turn.parts, speaker_prefix(author)))
    has_field = profile.author_names and _NAME.fullmatch(author)
    return attrs.evolve(turn, author=author if has_field else None)


def _prefixed(parts: tuple[ModelPart, ...], prefix: str) -> tuple[ModelPart, ...]:
    for index, part in enumerate(parts):
        if isinstance(part, TextPart):
            first = attrs.evolve(part, text=f"{prefix} {part.text}")
            return (*parts[:index], first, *parts[index + 1 :])
    return (TextPart(prefix), *parts)
