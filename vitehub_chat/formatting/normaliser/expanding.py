"""Expanding: tool results become messages of their own, behind the one they stood in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from vitehub_chat.formatting.turns import Turn
from vitehub_chat.model.model_messages import has_visible_text
from vitehub_chat.model.parts import (
    MediaPart,
    ModelPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def keep_sayable(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Drop what no provider can be told at its place.

    Data and approvals go everywhere, calls and reasoning outside an answer, and whatever is no
    result in a tool message.
    """
    return tuple(
        attrs.evolve(turn, parts=tuple(part for part in turn.parts if _is_sayable(part, turn)))
        for turn in turns
    )


def expand(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Give every result a tool message, behind the message it stood in.

    An assistant message is split where text follows a result.
    """
    return tuple(expanded for turn in turns for expanded in _expand(turn))


def _expand(turn: Turn) -> Iterator[Turn]:
    said: list[ModelPart] = []
    results: list[ToolResultPart] = []
    for part in turn.parts:
        if isinstance(part, ToolResultPart):
            results.append(part)
            continue
        if results and turn.role == "assistant" and _is_visible_text(part):
            yield from _unfold(turn, said, results)
            said, results = [], []
        said.append(part)
    yield from _unfold(turn, said, results)


def _unfold(
    turn: Turn, said: Sequence[ModelPart], results: Sequence[ToolResultPart]
) -> Iterator[Turn]:
    if said:
        yield attrs.evolve(turn, parts=tuple(said))
    for result in results:
        yield Turn("tool", (result,))


def _is_visible_text(part: ModelPart) -> bool:
    return isinstance(part, TextPart) and has_visible_text(part.text)


def _is_sayable(part: ModelPart, turn: Turn) -> bool:
    if isinstance(part, ToolResultPart):
        return True
    if isinstance(part, ToolCallPart | ReasoningPart):
        return turn.role == "assistant"
    return turn.role != "tool" and isinstance(part, TextPart | MediaPart)
