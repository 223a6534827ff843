"""Asking: one question to the driver's model, without tools and history."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol, runtime_checkable

import attrs

from vitehub_chat.agent.driver import Driver, DriverCall
from vitehub_chat.errors import ChatError
from vitehub_chat.model.context_policy import Ask
from vitehub_chat.model.events import Done, TextDelta
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import TextPart

_REFUSALS = frozenset({"content-filter", "content_filter", "refusal", "error"})


@runtime_checkable
class AskingDriver(Protocol):
    """A driver that can ask its model without the tools and instructions of the agent."""

    async def ask(self, system: str, prompt: str, /, *, deadline: datetime | None) -> str:
        """Return the answer to one question.

        Raises:
            ContextOverflowError: The question is too long for the model.
            ConfigError: The model cannot be used.
        """


def asker_of(driver: Driver) -> Ask | None:
    """Return what asks the model of a driver, or None if it has none."""
    if isinstance(driver, AskingDriver):
        return None if driver.model is None else driver.ask
    return None if driver.model is None else _StreamAsker(driver)


@attrs.frozen
class _StreamAsker:
    """Asks a driver as if for a turn, and gathers what it says."""

    driver: Driver

    async def __call__(self, system: str, prompt: str, /, *, deadline: datetime | None) -> str:
        question = Message("question", "user", (TextPart(prompt),))
        call = DriverCall(system=system, messages=(question,), deadline=deadline)
        pieces: list[str] = []
        async for event in self.driver.stream(call):
            if isinstance(event, TextDelta):
                pieces.append(event.text)
            elif isinstance(event, Done) and event.finish_reason in _REFUSALS:
                raise ChatError("the model refused", code="turn_failed")
        return "".join(pieces)
