"""The echo driver: says what it was told, for demos and tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from vitehub_chat.agent.driver import DriverCall, ToolSpec
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.events import Done, DriverEvent, StepFinished, StepStarted, TextDelta

DELTAS = 4
"""How many pieces an answer comes in at most."""


class EchoDriver:
    """Repeats the current message and counts the earlier ones; asks no model."""

    kind = "echo"
    profile: str | None = None
    model: str | None = None
    window_tokens: int | None = None
    tools: Sequence[ToolSpec] = ()

    def __init__(self, reply: str | None = None) -> None:
        self._reply = reply

    async def stream(self, call: DriverCall, /) -> AsyncIterator[DriverEvent]:
        """Answer in a few deltas: the fixed reply, or what was said and how much came before."""
        answer = _echo(call) if self._reply is None else self._reply
        yield StepStarted()
        for piece in _pieces(answer):
            yield TextDelta("text", piece)
        yield StepFinished()
        yield Done("stop")

    async def aclose(self) -> None:
        """Do nothing; it holds nothing."""


def create(config: Mapping[str, Any] | None = None) -> EchoDriver:
    """Build an echo driver.

    Args:
        config: `reply`, a text that is the answer to everything; by default the message is echoed.

    Raises:
        ConfigError: An unknown name, or a reply that is no text.
    """
    options = dict(config or {})
    reply = options.pop("reply", None)
    for name in options:
        raise ConfigError.unknown_name(str(name), ("reply",), path=f"driver.{name}")
    if reply is not None and not isinstance(reply, str):
        raise ConfigError(f"must be a text, not {type(reply).__name__!r}", path="driver.reply")
    return EchoDriver(reply)


def _echo(call: DriverCall) -> str:
    said = f"You said: {call.text or '(no text)'}"
    earlier = len(call.messages) - 1
    if earlier == 0:
        return said
    return f"{said} ({earlier} earlier {'message' if earlier == 1 else 'messages'})"


def _pieces(text: str) -> list[str]:
    size = -(-len(text) // DELTAS) or 1
    return [text[start : start + size] for start in range(0, len(text), size)]
