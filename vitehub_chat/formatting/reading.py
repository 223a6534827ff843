"""Reading: messages, stored or prepared, become turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import attrs

from vitehub_chat.formatting.turns import Role, SyntheticResult, SyntheticText, Turn
from vitehub_chat.model.json_text import replace_surrogates
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import ROLES, read_parts
from vitehub_chat.model.parts import (
    ModelPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

_NOTHING: Mapping[str, Any] = {}


def read_turns(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """Return messages as turns, in the same order; an unknown role becomes `user`.

    Parts may be values or JSON objects. The `synthetic` mark of a text or result, and the
    `signature` that a call carries beside its `provider`, are kept.
    """
    return tuple(_read(message) for message in messages)


def _read(message: Message) -> Turn:
    role = cast("Role", message.role if message.role in ROLES else "user")
    author = message.metadata.get("author") if message.metadata else None
    return Turn(
        role,
        tuple(_without_id(part) for part in _read_parts(message.parts)),
        replace_surrogates(author) if isinstance(author, str) else None,
    )


def _read_parts(parts: Sequence[Part]) -> Sequence[ModelPart]:
    if not any(_is_marked(part) for part in parts):
        return read_parts(parts)
    found: list[ModelPart] = []
    for index, part in enumerate(parts):
        # The position names a call without id, so each part is read at its own.
        for read in read_parts((*[_NOTHING] * index, part)):
            found.extend(_with_mark(part, read) if isinstance(part, Mapping) else [read])
    return found


def _is_marked(part: Part) -> bool:
    if not isinstance(part, Mapping):
        return False
    return "synthetic" in part or (part.get("type") == "tool-call" and "signature" in part)


def _with_mark(source: Mapping[str, Any], part: ModelPart) -> Iterator[ModelPart]:
    mark, signature = source.get("synthetic"), source.get("signature")
    if isinstance(part, TextPart) and isinstance(mark, str):
        yield SyntheticText(part.text, synthetic=mark)
    elif isinstance(part, ToolResultPart) and isinstance(mark, str):
        yield SyntheticResult(part.id, part.name, part.output, part.status, part.error, mark)
    elif isinstance(part, ToolCallPart) and isinstance(signature, str):
        provider = source.get("provider")
        if isinstance(provider, str):
            yield ReasoningPart(provider, signature=signature)
        yield part
    else:
        yield part


def _without_id(part: ModelPart) -> ModelPart:
    if isinstance(part, TextPart):
        return attrs.evolve(part, text=replace_surrogates(part.text), id=None)
    return part
