"""The payload: instructions, summary, messages and the current message, in their places."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

import attrs

from vitehub_chat.formatting.cleaning import (
    close_current,
    escape_tags,
    frame_summary,
    gap_line,
    open_current,
)
from vitehub_chat.formatting.turns import BLANK_LINE
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import has_visible_text, read_parts
from vitehub_chat.model.parts import ModelPart, TextPart

Placement = Literal["system", "user"]


@attrs.frozen(kw_only=True)
class Payload:
    """What a model is given: the text of the system slot, or None, and the messages."""

    system: str | None
    messages: tuple[Message, ...]


def build_payload(
    messages: Sequence[Message],
    *,
    system: str | None = None,
    summary: str | None = None,
    current: Message | None = None,
    summary_placement: Placement = "system",
    wrap_current: bool = True,
    not_shown: int = 0,
) -> Payload:
    """Put everything in its place: system slot, summary, messages, current message.

    Args:
        messages: The messages in order, without the current one.
        system: Instructions; blank ones are none.
        summary: The text of a rolling summary, cleaned here; a blank one is none.
        current: The current message, the last one, or None.
        summary_placement: `system`: the summary comes after the instructions and a blank line;
            `user`: a user message says it, before the first message that is not the system's.
        wrap_current: Whether the texts of a current user message are marked beside a summary.
        not_shown: How many earlier messages were left out; a line says so where the summary is.
    """
    frame = frame_summary(summary or "")
    background = _join([frame, gap_line(not_shown)])
    slot = [system or "", background if summary_placement == "system" else ""]
    rows = _with_summary(messages, background if summary_placement == "user" else "")
    if current is not None:
        is_wrapped = bool(frame) and wrap_current and current.role == "user"
        rows = (*rows, wrap(current) if is_wrapped else current)
    return Payload(system=_join(slot) or None, messages=rows)


def wrap(current: Message) -> Message:
    """Return a message with a line before its first text and one behind its last.

    Tags of ours in its texts are escaped. A message without visible text is returned as it is.
    """
    parts = read_parts(current.parts)
    places = [index for index, part in enumerate(parts) if _is_visible(part)]
    if not places:
        return current
    return attrs.evolve(
        current,
        parts=tuple(
            _wrapped(part, opens=index == places[0], closes=index == places[-1])
            for index, part in enumerate(parts)
        ),
    )


def _wrapped(part: ModelPart, *, opens: bool, closes: bool) -> ModelPart:
    if not isinstance(part, TextPart):
        return part
    text = escape_tags(part.text)
    text = open_current(text) if opens else text
    return attrs.evolve(part, text=close_current(text) if closes else text)


def _with_summary(messages: Sequence[Message], text: str) -> tuple[Message, ...]:
    if not text:
        return tuple(messages)
    begin = len(list(takewhile(lambda message: message.role == "system", messages)))
    said = Message(None, "user", (TextPart(text),))
    return (*messages[:begin], said, *messages[begin:])


def _is_visible(part: ModelPart) -> bool:
    return isinstance(part, TextPart) and has_visible_text(part.text)


def _join(texts: Sequence[str]) -> str:
    return BLANK_LINE.join(text for text in texts if has_visible_text(text))
