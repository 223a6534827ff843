"""Pairing: every tool call has one id of its own and one result, directly behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from vitehub_chat.formatting.turns import SyntheticResult, Turn
from vitehub_chat.model.json_text import compact_json, jsonable, replace_surrogates
from vitehub_chat.model.model_messages import has_visible_text
from vitehub_chat.model.parts import ABSENT, ModelPart, ToolCallPart, ToolResultPart

INTERRUPTED: Final = "Interrupted: this tool call has no result."
NO_OUTPUT: Final = "(no output)"


def separate_ids(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Rename call ids that are used again, with their results, and drop results without a call.

    A result answers the nearest earlier call of its id; a renamed id is the next free `<id>_2`,
    `<id>_3` and so on.
    """
    naming = _Naming({call.id for turn in turns for call in turn.calls})
    return tuple(
        attrs.evolve(turn, parts=tuple(naming.renamed(turn.parts)))
        if turn.calls or turn.results
        else turn
        for turn in turns
    )


def pair(turns: Sequence[Turn], *, live_frontier: bool) -> tuple[Turn, ...]:
    """Put the result of every call directly behind it, in call order; others come after them.

    Of several results the last one counts; a call without one gets one that says so. With
    `live_frontier` the last message, its results aside, may have calls without result.

    Args:
        turns: Turns whose results are messages of their own, with ids used once.
        live_frontier: Whether the last message is still being answered.
    """
    results = {result.id: result for turn in turns for result in turn.results}
    spoken = [turn for turn in turns if turn.role != "tool"]
    last = len(spoken) - 1
    paired: list[Turn] = []
    for index, turn in enumerate(spoken):
        paired.append(turn)
        is_live = live_frontier and index == last
        paired.extend(_answers(turn.calls, results, is_live=is_live))
    return tuple(paired)


class _Naming:
    """The ids given so far, by the id that was asked for."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._given: dict[str, str] = {}

    def renamed(self, parts: Sequence[ModelPart]) -> Iterator[ModelPart]:
        for part in parts:
            if isinstance(part, ToolCallPart):
                self._given[part.id] = self._free(part.id)
                yield attrs.evolve(part, id=self._given[part.id])
            elif isinstance(part, ToolResultPart):
                if part.id in self._given:
                    yield attrs.evolve(part, id=self._given[part.id])
            else:
                yield part

    def _free(self, call_id: str) -> str:
        if call_id not in self._given:
            return call_id
        number = 2
        while (free := f"{call_id}_{number}") in self._taken:
            number += 1
        self._taken.add(free)
        return free


def _answers(
    calls: Sequence[ToolCallPart], results: dict[str, ToolResultPart], *, is_live: bool
) -> Iterator[Turn]:
    for call in calls:
        result = results.get(call.id)
        if result is not None:
            yield Turn("tool", (_told(attrs.evolve(result, name=call.name)),))
        elif not is_live:
            interrupted = SyntheticResult(call.id, call.name, status="failed", error=INTERRUPTED)
            yield Turn("tool", (interrupted,))


def _told(result: ToolResultPart) -> ToolResultPart:
    """Give a result something to tell: a failed one its error, any other one its output."""
    if result.status != "failed":
        return attrs.evolve(result, output=_visible(result.output), error=None)
    error = result.error
    if error is None or not has_visible_text(error):
        output = _visible(result.output)
        error = output if isinstance(output, str) else compact_json(output)
    return attrs.evolve(result, output=ABSENT, error=replace_surrogates(error))


def _visible(output: Any) -> Any:
    if output is ABSENT or output is None:
        return NO_OUTPUT
    if isinstance(output, str):
        return replace_surrogates(output) if has_visible_text(output) else NO_OUTPUT
    return jsonable(output)
