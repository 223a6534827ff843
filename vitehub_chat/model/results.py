"""Results: what came of a turn, and what a dry run would send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from vitehub_chat.model.messages import Message
from vitehub_chat.model.requests import RunInfo

RunStatus = Literal["complete", "interrupted", "coalesced", "dropped", "filtered", "error"]
SelectionReason = Literal[
    "current",
    "window",
    "retained",
    "duplicate",
    "other_session",
    "before_session",
    "no_window",
    "too_old",
    "over_count",
    "orphan_tool_result",
    "not_shown",
    "not_used",
    "rolled",
    "trimmed",
]


@attrs.frozen
class SelectionEntry:
    """What became of one message, and why.

    Attributes:
        message_id: Its id, or None.
        seq: Its number when it is a stored row, or None.
        role: Its role as supplied.
        kept: Whether the driver gets it.
        reason: Why it is kept or cut.
        tokens: Its estimated size, or None where nothing is estimated.
    """

    message_id: str | None
    seq: int | None
    role: str
    kept: bool
    reason: SelectionReason
    tokens: int | None = None


@attrs.frozen(kw_only=True)
class ContextBudget:
    """How much of the model's window a call used, after condensing and trimming.

    Attributes:
        limit: The whole budget.
        used: What the call used of it, as estimated.
        used_pct: 100 times used by limit, one decimal, half up; may exceed 100.
        unit: `tokens` or `runes`.
        estimator: The name of what counted.
        loops: How many attempts at condensing were made.
        rolled: How many messages were put into the summary.
        trimmed: How many messages were left out of this one call, because they did not fit.
        over: It does not fit although everything that may be left out was.
        reason: Why condensing stopped short of its target, or None.
        summary_through_seq: The last row that the summary covers, or None without a summary.
        flush_status: What became of the memory of what was condensed; `off` without one.
        resolved_window: Whether somebody said how large the model's window is.
        used_runes: The same as `used` where runes are counted, else None.
        limit_runes: The same as `limit` where runes are counted, else None.
    """

    limit: int
    used: int
    used_pct: float
    unit: Literal["tokens", "runes"] = "tokens"
    estimator: str = ""
    loops: int = 0
    rolled: int = 0
    trimmed: int = 0
    over: bool = False
    reason: str | None = None
    summary_through_seq: int | None = None
    flush_status: str = "off"
    resolved_window: bool = True
    used_runes: int | None = None
    limit_runes: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON; sizes in runes only where they are counted."""
        fields = attrs.asdict(self)
        if self.unit != "runes":
            del fields["used_runes"], fields["limit_runes"]
        return fields


@attrs.frozen(kw_only=True)
class PreparedInvocation:
    """What a driver gets, and why.

    Attributes:
        messages: In order, the current one last.
        selection: One entry per input message and stored row that was read.
        session_id: The session of the turn, or None.
        run: Where the message came from, or None.
        context: Values for the driver.
        context_budget: How much of the window is used, or None where nothing is estimated.
        system: The text of the system slot without what the driver adds itself, or None.
        summary_version: The version of the rolling summary that is among it, or None.
    """

    messages: tuple[Message, ...]
    selection: Sequence[SelectionEntry]
    session_id: str | None
    run: RunInfo | None
    context: Mapping[str, Any]
    context_budget: ContextBudget | None = None
    system: str | None = None
    summary_version: int | None = None


@attrs.frozen(kw_only=True)
class RunResult:
    """What came of one call of a trigger.

    Attributes:
        text: The answer as text; empty when there is none.
        message: The answer as a UI message, or None.
        new_messages: What the driver made, the answer last.
        status: How it ended.
        finish_reason: Why the driver stopped, or None.
        run: Where the message came from, or None.
        session_id: The session of the turn, or None.
        context_budget: How much of the window was used, or None.
        prepared: What the driver got; set exactly if this call's own message was driven.
        reason: Why a message was dropped: `busy`, `queue_full`, `expired`; else None.
    """

    text: str = ""
    message: Message | None = None
    new_messages: tuple[Message, ...] = ()
    status: RunStatus
    finish_reason: str | None = None
    run: RunInfo | None = None
    session_id: str | None = None
    context_budget: ContextBudget | None = None
    prepared: PreparedInvocation | None = None
    reason: str | None = None
