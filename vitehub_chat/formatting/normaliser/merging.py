"""Merging: neighbours of one role become one turn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import attrs

from vitehub_chat.errors import InputError
from vitehub_chat.formatting.profiles import Profile
from vitehub_chat.formatting.turns import BLANK_LINE, Turn
from vitehub_chat.model.parts import ModelPart, TextPart

_MERGED = frozenset({"user", "assistant"})


def merge(turns: Sequence[Turn], profile: Profile) -> tuple[Turn, ...]:
    """Make one turn of neighbours of one role, as far as the profile asks for.

    An author is kept where all of the neighbours have the same one.

    Raises:
        InputError: Nobody but the system says anything (`no_user_message`).
    """
    if all(turn.role == "system" for turn in turns):
        raise InputError(
            "there is nothing but system messages",
            path="messages",
            code="no_user_message",
            hint="give at least one user message",
        )
    if profile.merge == "none":
        return tuple(turns)
    if profile.merge == "blocks":
        return _merge_neighbours([_as_user(turn) for turn in turns])
    return tuple(
        attrs.evolve(turn, parts=_join_texts(turn.parts)) for turn in _merge_neighbours(turns)
    )


def _as_user(turn: Turn) -> Turn:
    return attrs.evolve(turn, role="user") if turn.role == "tool" else turn


def _merge_neighbours(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    merged: list[Turn] = []
    for role, group in groupby(turns, key=lambda turn: turn.role):
        neighbours = list(group)
        if role not in _MERGED:
            merged.extend(neighbours)
            continue
        authors = {turn.author for turn in neighbours}
        parts = tuple(part for turn in neighbours for part in turn.parts)
        author = authors.pop() if len(authors) == 1 else None
        merged.append(attrs.evolve(neighbours[0], parts=parts, author=author))
    return tuple(merged)


def _join_texts(parts: Sequence[ModelPart]) -> tuple[ModelPart, ...]:
    joined: list[ModelPart] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, TextPart) and isinstance(last, TextPart):
            joined[-1] = attrs.evolve(last, text=f"{last.text}{BLANK_LINE}{part.text}")
        else:
            joined.append(part)
    return tuple(joined)
