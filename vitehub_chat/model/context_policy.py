"""Context policy: how history that does not fit the model is condensed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, Literal, Protocol

import attrs

from vitehub_chat.model.estimates import EstimatorChoice, SizeUnit
from vitehub_chat.model.messages import Message

Placement = Literal["system", "user"]
FlushStatus = Literal["off", "done", "failed"]
RollReason = Literal[
    "session_changed",
    "max_loops",
    "deadline",
    "min_verbatim",
    "no_safe_unit",
    "no_gain",
    "flush_failed",
    "summarizer_failed",
    "conflict",
]
"""Why rolling stopped short of its target."""

FALLBACK_WINDOW: Final = 128_000
"""How many tokens a model is taken to have where nobody says."""


class Summarizer(Protocol):
    """Condenses messages.

    An object may also have `model`, the name of the model that writes, and `prompt_size`, what its
    own prompts take of the model's window in the unit of the sizes.
    """

    def __call__(
        self,
        previous: str,
        messages: Sequence[Message],
        /,
        *,
        max_size: int,
        deadline: datetime,
    ) -> Awaitable[str]:
        """Return a summary of what `previous` says and of the messages.

        Args:
            previous: The summary so far, to be updated; empty at first.
            messages: What is condensed, oldest first, as a driver gets it.
            max_size: How long the summary may be, in the unit of the estimator; more is cut off.
            deadline: When nobody waits for it any more.
        """


class Ask(Protocol):
    """Asks the driver's model one question, without tools and history."""

    def __call__(self, system: str, prompt: str, /, *, deadline: datetime | None) -> Awaitable[str]:
        """Return the answer as text."""


@attrs.frozen(kw_only=True)
class SummarizerSetting:
    """What the factory of a summarizer is given.

    Attributes:
        ask: Asks the driver's model, or None if the driver has none.
        model: The name of that model, or None.
        count: Counts a text in the unit of all sizes.
        unit: That unit.
    """

    ask: Ask | None
    model: str | None
    count: Callable[[str], int]
    unit: SizeUnit = "tokens"


SummarizerChoice = str | Callable[..., Awaitable[str]]


@attrs.frozen(kw_only=True)
class ContextPolicy:
    """When history is condensed, down to what, and by whom (`context`).

    Sizes are in the unit of the estimator.

    Attributes:
        estimator: What counts, as chosen.
        window_tokens: How much the model takes in tokens; None is what the driver says.
        reserve_output_tokens: How much of it is left for the answer; None is an eighth, 4096 to
            16384.
        runes_per_token: How many runes a token is, where runes are counted.
        limit: The whole budget; None is the window less the reserve.
        trigger_ratio: Above which part of the limit condensing begins.
        target_ratio: Down to which part it goes.
        hard_cap: An absolute ceiling, or None.
        batch_messages: How many messages are condensed at once.
        max_loops: How many attempts one turn makes.
        min_verbatim: How many of the newest messages are never condensed.
        summary_max: How long the summary may be; None is the smaller of 1500 tokens and 15 % of
            the limit.
        message_overhead: What a message costs on top of its content; None is the estimator's.
        frame_overhead: What all fixed texts around a summary cost; None measures them.
        retries: How many further tries one call of the summarizer has.
        summarizer_timeout: How long one call may take.
        turn_deadline: How long all condensing of one turn may take.
        failure_alarm: How many failed turns in a row until that is an error.
        checkpoints_kept: How many of the newest checkpoints are kept.
        summary_placement: Where the summary stands.
        wrap_current: Whether the current message is marked beside a summary.
        summarizer: Who condenses: a name or a callable; None is the driver's model.
    """

    estimator: EstimatorChoice = "segments"
    window_tokens: int | None = None
    reserve_output_tokens: int | None = None
    runes_per_token: float = 2.0
    limit: int | None = None
    trigger_ratio: Decimal = Decimal("0.88")
    target_ratio: Decimal = Decimal("0.70")
    hard_cap: int | None = None
    batch_messages: int = 4
    max_loops: int = 48
    min_verbatim: int = 8
    summary_max: int | None = None
    message_overhead: int | None = None
    frame_overhead: int | None = None
    retries: int = 1
    summarizer_timeout: timedelta = timedelta(seconds=30)
    turn_deadline: timedelta = timedelta(seconds=60)
    failure_alarm: int = 3
    checkpoints_kept: int = 64
    summary_placement: Placement = "system"
    wrap_current: bool = True
    summarizer: SummarizerChoice | None = None
