"""Estimates: what sizes are counted by, in which unit, and how a count is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

import attrs

from vitehub_chat.model.json_text import JsonObject
from vitehub_chat.model.messages import Message

SizeUnit = Literal["tokens", "runes"]


class DescribedTool(Protocol):
    """A tool, as far as the model is told of it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def description(self) -> str:
        """What it does, for the model."""

    @property
    def parameters(self) -> JsonObject:
        """JSON Schema of its input."""


@runtime_checkable
class Estimator(Protocol):
    """Counts text; more text never counts less.

    Beside `count_text` it may count whole messages (`MessageEstimator`) and tools
    (`ToolsEstimator`); without, their texts are counted one by one and added up.
    """

    @property
    def name(self) -> str:
        """Its name, part of the key of every kept count."""

    @property
    def version(self) -> str:
        """Changes whenever it counts anything differently."""

    @property
    def unit(self) -> SizeUnit:
        """What it counts: `tokens` or `runes` (code points)."""

    def count_text(self, text: str, /) -> int:
        """Return the size of a text; 0 for an empty one."""


@runtime_checkable
class MessageEstimator(Estimator, Protocol):
    """An estimator that counts whole messages itself."""

    def count_message(self, message: Message, /) -> int:
        """Return the size of a message with its media, without the overhead per message."""


@runtime_checkable
class ToolsEstimator(Estimator, Protocol):
    """An estimator that counts what tools cost itself."""

    def count_tools(self, tools: Sequence[DescribedTool], /) -> int:
        """Return what the descriptions of all tools cost together."""


EstimatorChoice = str | Estimator | Callable[[str], int]
"""What may be given as an estimator: a name, an estimator, or what counts a text."""


@attrs.frozen
class CountKey:
    """Under what the size of a message is kept, without the overhead per message.

    Attributes:
        estimator: The name of what counted it.
        version: The version of what counted it; a count of another one is void.
        digest: SHA-256 of what was counted, in hexadecimal.
    """

    estimator: str
    version: str
    digest: str
