"""Turns: what the normaliser works on, a message reduced to what a provider can be told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import attrs

from vitehub_chat.model.parts import (
    MediaPart,
    ModelPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    part_to_json,
)

Role = Literal["user", "assistant", "system", "tool"]

BLANK_LINE = "\n\n"


@attrs.frozen
class Turn:
    """One message without id and time.

    Attributes:
        role: Who speaks.
        parts: What is said, in order.
        author: The speaker in a group, or None; only of users.
    """

    role: Role
    parts: tuple[ModelPart, ...]
    author: str | None = None

    @property
    def text(self) -> str:
        """Its texts, with a blank line between."""
        return BLANK_LINE.join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def calls(self) -> tuple[ToolCallPart, ...]:
        """Its tool calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCallPart))

    @property
    def results(self) -> tuple[ToolResultPart, ...]:
        """Its tool results, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResultPart))

    @property
    def has_media(self) -> bool:
        """Whether an image, a sound or another file is among its parts."""
        return any(isinstance(part, MediaPart) for part in self.parts)


@attrs.frozen
class SyntheticText(TextPart):
    """A text that nobody said: a provider's rules ask for one at this place."""

    synthetic: str = "user_first"


@attrs.frozen
class SyntheticResult(ToolResultPart):
    """A result that stands for one that never came."""

    synthetic: str = "interrupted"


def split_system(turns: Sequence[Turn]) -> tuple[str | None, Sequence[Turn]]:
    """Return the text of the system slot, or None, and the turns behind it."""
    if turns and turns[0].role == "system":
        return turns[0].text, turns[1:]
    return None, turns


def turns_to_json(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Return turns as JSON objects: `role`, `parts` and, where known, `metadata.author`."""
    return [_turn_to_json(turn) for turn in turns]


def _turn_to_json(turn: Turn) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "role": turn.role,
        "parts": [_part_to_json(part) for part in turn.parts],
    }
    if turn.author is not None:
        fields["metadata"] = {"author": turn.author}
    return fields


def _part_to_json(part: ModelPart) -> dict[str, Any]:
    if isinstance(part, SyntheticText):
        return {"type": "text", "text": part.text, "synthetic": part.synthetic}
    if isinstance(part, SyntheticResult):
        plain = ToolResultPart(part.id, part.name, part.output, part.status, part.error)
        return {**part_to_json(plain), "synthetic": part.synthetic}
    return dict(part_to_json(part))
