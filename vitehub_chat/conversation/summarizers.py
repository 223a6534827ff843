"""Summarizers: who condenses, found by name; the driver's model, or nobody but the messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, cast

import attrs

from vitehub_chat import plugins
from vitehub_chat.errors import ConfigError
from vitehub_chat.formatting.summary_prompts import SYSTEM, prompt, text_of
from vitehub_chat.model.context_policy import (
    Ask,
    Summarizer,
    SummarizerChoice,
    SummarizerSetting,
)
from vitehub_chat.model.messages import Message

_FIRST: Final = 160
"""How many characters of a message an extract keeps."""


def summarizer_for(choice: SummarizerChoice | None, setting: SummarizerSetting) -> Summarizer:
    """Return who condenses: by default the driver's model, or an extract where it has none.

    Raises:
        ConfigError: The name is unknown, or names the driver's model and there is none.
    """
    if callable(choice):
        return cast(Summarizer, choice)
    name = choice or ("extractive" if setting.ask is None else "driver")
    made = plugins.summarizers.get(name, path="context.summarizer")(setting)
    if not callable(made):
        raise ConfigError(
            f"{name!r} built no callable", path="context.summarizer", hint="see Summarizer"
        )
    return cast(Summarizer, made)


def model_of(summarizer: Summarizer) -> str | None:
    """Return the name of what writes the summaries, or None if it does not say."""
    model = getattr(summarizer, "model", None)
    return model if isinstance(model, str) else None


def prompt_size_of(summarizer: Summarizer) -> int:
    """Return what the prompts of a summarizer take of the model's window."""
    size = getattr(summarizer, "prompt_size", 0)
    return size if isinstance(size, int) else 0


@attrs.frozen(kw_only=True)
class DriverSummarizer:
    """Asks the driver's model, without tools.

    Attributes:
        model: The name of the model.
        prompt_size: What its prompts take, messages and summary aside.
        unit: What sizes are told to the model in.
    """

    model: str | None
    prompt_size: int
    unit: str
    _ask: Ask = attrs.field(alias="ask")

    async def __call__(
        self,
        previous: str,
        messages: Sequence[Message],
        /,
        *,
        max_size: int,
        deadline: datetime,
    ) -> str:
        """Return what the model makes of the summary so far and the messages."""
        asked = prompt(previous, messages, max_size=max_size, unit=self.unit)
        return await self._ask(SYSTEM, asked, deadline=deadline)


def create_driver(setting: SummarizerSetting) -> DriverSummarizer:
    """Build the summarizer that asks the driver's model.

    Raises:
        ConfigError: The driver has no model.
    """
    if setting.ask is None:
        raise ConfigError(
            "the driver has no model that could condense",
            path="context.summarizer",
            hint="give 'extractive' or a callable",
        )
    unit = "characters" if setting.unit == "runes" else setting.unit
    bare = prompt("", [Message(None, "assistant", ())] * 4, max_size=10_000, unit=unit)
    size = setting.count(SYSTEM) + setting.count(bare)
    return DriverSummarizer(model=setting.model, prompt_size=size, unit=unit, ask=setting.ask)


@attrs.frozen(kw_only=True)
class ExtractiveSummarizer:
    """Keeps the beginning of each message, the newest ones as far as they fit; asks no model."""

    count: Callable[[str], int]
    model: str = "extractive"

    async def __call__(
        self,
        previous: str,
        messages: Sequence[Message],
        /,
        *,
        max_size: int,
        deadline: datetime,  # noqa: ARG002 - it takes no time
    ) -> str:
        """Return the lines of the summary so far and one per message, without the oldest ones."""
        lines = [line for line in previous.split("\n") if line.strip()]
        lines.extend(line for message in messages if (line := _line(message)))
        size, kept = 0, len(lines)
        while kept and size + self.count(lines[kept - 1]) + 1 <= max_size:
            kept -= 1
            size += self.count(lines[kept]) + 1
        return "\n".join(lines[kept:] or lines[-1:])


def create_extractive(setting: SummarizerSetting) -> ExtractiveSummarizer:
    """Build the summarizer that asks no model."""
    return ExtractiveSummarizer(count=setting.count)


def _line(message: Message) -> str:
    text = " ".join(text_of(message).split())
    if not text:
        return ""
    return f"- {message.role}: {text[:_FIRST]}{'…' if len(text) > _FIRST else ''}"
