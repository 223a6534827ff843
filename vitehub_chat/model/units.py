"""Units: messages that stay or go together, and the tool calls that wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import read_parts
from vitehub_chat.model.parts import (
    ApprovalDecisionPart,
    ApprovalRequestPart,
    ModelPart,
    ToolCallPart,
    ToolResultPart,
)


def split_units(messages: Sequence[Message]) -> tuple[range, ...]:
    """Divide messages into units, as ranges of their indices, in order and without gaps.

    A unit is as small as can be without a tool call apart from a result that answers it, which is
    the nearest earlier call of that id. A result without a call binds nothing.
    """
    last_bound = list(range(len(messages)))
    called_at: dict[str, int] = {}
    for index, part in _parts_of(messages):
        if isinstance(part, ToolCallPart):
            called_at[part.id] = index
        elif isinstance(part, ToolResultPart) and part.id in called_at:
            last_bound[called_at[part.id]] = index
    units: list[range] = []
    begin = end = 0
    for index, bound in enumerate(last_bound):
        end = max(end, bound)
        if index == end:
            units.append(range(begin, index + 1))
            begin = end = index + 1
    return tuple(units)


def find_unbound(messages: Sequence[Message]) -> int | None:
    """Return the index of the last message with a result whose call is not among these."""
    called: set[str] = set()
    last: int | None = None
    for index, part in _parts_of(messages):
        if isinstance(part, ToolCallPart):
            called.add(part.id)
        elif isinstance(part, ToolResultPart) and part.id not in called:
            last = index
    return last


@attrs.frozen(kw_only=True)
class Waiting:
    """Messages whose tool calls may still be answered, as indices.

    Attributes:
        undecided: With a call whose approval was asked for and not decided, or with that question.
        calls: With a call of any kind that waits.
    """

    undecided: frozenset[int]
    calls: frozenset[int]


def find_waiting(messages: Sequence[Message]) -> Waiting:
    """Return where tool calls wait, for a decision or for their result.

    A call without result waits while a question about its approval is open, else until a user
    message comes behind it; the current message is one and belongs at the end of `messages`.
    """
    calls = _follow_calls(messages)
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    last_user = users[-1] if users else -1
    unanswered = [call for call in calls if not call.is_answered]
    asked = [call for call in unanswered if call.questions]
    return Waiting(
        undecided=frozenset(
            index for call in asked for index in (call.index, *call.questions.values())
        ),
        calls=frozenset(
            call.index for call in unanswered if call.questions or call.index > last_user
        ),
    )


@attrs.define
class _Call:
    """A call while its fate is looked for; `questions` are those not decided, by approval id."""

    index: int
    is_answered: bool = False
    questions: dict[str, int] = attrs.field(factory=dict)


def _follow_calls(messages: Sequence[Message]) -> list[_Call]:
    calls: list[_Call] = []
    newest: dict[str, _Call] = {}
    asked_about: dict[str, _Call] = {}
    for index, part in _parts_of(messages):
        if isinstance(part, ToolCallPart):
            newest[part.id] = call = _Call(index)
            calls.append(call)
        elif isinstance(part, ToolResultPart) and part.id in newest:
            newest[part.id].is_answered = True
        elif isinstance(part, ApprovalRequestPart) and part.call_id in newest:
            asked_about[part.id] = call = newest[part.call_id]
            call.questions[part.id] = index
        elif isinstance(part, ApprovalDecisionPart) and part.id in asked_about:
            asked_about[part.id].questions.pop(part.id, None)
    return calls


def _parts_of(messages: Sequence[Message]) -> Iterator[tuple[int, ModelPart]]:
    for index, message in enumerate(messages):
        for part in read_parts(message.parts):
            yield index, part
