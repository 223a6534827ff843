"""Pairing for Pydantic AI: which tool result belongs to which call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart

from vitehub_chat.model import parts as ours
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import read_parts


@attrs.define(kw_only=True)
class Call:
    """One tool call, and what came of it.

    Attributes:
        id: Its id, unique in the history.
        name: The tool.
        input: What the tool was given.
        result: The last result for it, or None.
        decision: What somebody decided about it, or None.
        closed: Whether its result is written already.
    """

    id: str
    name: str
    input: Any = None
    result: ours.ToolResultPart | None = None
    decision: ours.ApprovalDecisionPart | None = None
    closed: bool = False


@attrs.frozen
class Split:
    """A place where the model was asked again, after it had seen results."""


Item = ours.TextPart | ours.MediaPart | ours.ReasoningPart | Call | Split
"""What an entry consists of; results are with their calls."""


@attrs.frozen
class Entry:
    """One message, with its calls paired.

    Attributes:
        message: The message.
        items: What it consists of; of one with `native` only the calls that are open in there.
        native: The model messages that stand for it, or none.
    """

    message: Message
    items: tuple[Item, ...]
    native: tuple[ModelMessage, ...] = ()


def pair(messages: Sequence[Message], native: Mapping[str, Sequence[ModelMessage]]) -> list[Entry]:
    """Return an entry per message, in order.

    A result belongs to the nearest earlier call of its id, wherever it stands; without one it is
    left out. A message whose native payload leaves another call than the last ones open, or uses an
    id that an earlier message has, is read from its parts.
    """
    pairing = _Pairing()
    return [
        pairing.read(message, native.get(message.id, ()) if message.id else ())
        for message in messages
    ]


class _Pairing:
    def __init__(self) -> None:
        self._latest: dict[str, Call] = {}
        self._asked: dict[str, Call] = {}
        self._taken: set[str] = set()

    def read(self, message: Message, payload: Sequence[ModelMessage]) -> Entry:
        parts = read_parts(message.parts)
        calls = self._calls_of(payload)
        if calls is not None:
            for part in parts:
                self._settle(part)
            return Entry(message, tuple(calls), tuple(payload))
        if message.role == "assistant":
            return Entry(attrs.evolve(message, parts=parts), tuple(self._items(parts)))
        for part in parts:
            self._settle(part)
        return Entry(attrs.evolve(message, parts=parts), ())

    def _items(self, parts: Sequence[ours.ModelPart]) -> list[Item]:
        items: list[Item] = []
        answered = False
        for part in parts:
            if isinstance(part, ours.ToolCallPart):
                items.append(self._call(part))
            elif isinstance(part, ours.TextPart | ours.MediaPart | ours.ReasoningPart):
                if answered:
                    items.append(Split())
                answered = False
                items.append(part)
            else:
                answered = self._settle(part) or answered
        return items

    def _call(self, part: ours.ToolCallPart) -> Call:
        call = Call(id=self._free_id(part.id), name=part.name, input=part.input)
        self._latest[part.id] = call
        return call

    def _free_id(self, wanted: str) -> str:
        found, number = wanted, 1
        while found in self._taken:
            number += 1
            found = f"{wanted}_{number}"
        self._taken.add(found)
        return found

    def _settle(self, part: ours.ModelPart) -> bool:
        """Note a result or a decision with its call; tell whether it was a result of a call."""
        if isinstance(part, ours.ToolResultPart) and part.id in self._latest:
            self._latest[part.id].result = part
            return True
        if isinstance(part, ours.ApprovalRequestPart) and part.call_id in self._latest:
            self._asked[part.id] = self._latest[part.call_id]
        elif isinstance(part, ours.ApprovalDecisionPart) and part.id in self._asked:
            self._asked[part.id].decision = part
        return False

    def _calls_of(self, payload: Sequence[ModelMessage]) -> list[Call] | None:
        """Return the calls of a payload, or None when it cannot stand for its message."""
        calls: dict[str, Call] = {}
        last: ModelMessage | None = None
        for message in payload:
            if isinstance(message, ModelResponse):
                if not all(call.closed for call in calls.values()):
                    return None
                last = message
            for part in message.parts:
                if isinstance(part, ToolCallPart):
                    if part.tool_call_id in calls or part.tool_call_id in self._taken:
                        return None
                    calls[part.tool_call_id] = Call(id=part.tool_call_id, name=part.tool_name)
                elif isinstance(part, ToolReturnPart):
                    if part.tool_call_id not in calls:
                        return None
                    calls[part.tool_call_id].closed = True
        if last is None:
            return None
        self._taken |= calls.keys()
        self._latest |= calls
        return list(calls.values())
