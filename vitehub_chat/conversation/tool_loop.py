"""Tool loop: what a long turn sends, condensed between its own requests; nothing is stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Final

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.rolling import Attempts
from vitehub_chat.conversation.sizing import Sizer
from vitehub_chat.conversation.summarizing import SummarizerFailed, Summarizing
from vitehub_chat.formatting.cleaning import frame_summary, gap_line
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import read_parts
from vitehub_chat.model.parts import TextPart, ToolCallPart, ToolResultPart
from vitehub_chat.selection.limits import Limits

KEPT: Final = 2
"""How many of the newest complete exchanges are never condensed."""
LEAST: Final = 3
"""How many complete exchanges there have to be."""
EVERY: Final = 2
"""In how many requests there is one summary at most."""
_LEAST_GAIN: Final = 10
"""A summary gains a tenth of the size at least, or is not used."""
BLOCK_ID: Final = "condensed-steps"


@attrs.define(kw_only=True)
class ToolLoop:
    """Asked before each request of one turn from the second one on.

    An exchange is a message of the model with its tool calls and all their results. All complete
    ones but the newest two become one block, once the call is larger than the trigger.

    Attributes:
        base: How many messages the first request had; they stay as they are.
        base_used: Their size with all that is sent beside them.
        attempts: Shared with all condensing of the turn.
        changed: Told the size of a request that is sent with less than was said.
        has_changed: Whether any request was.
    """

    base: int
    base_used: int
    sizer: Sizer
    limits: Limits
    summarizing: Callable[[], Awaitable[Summarizing]]
    clock: Clock
    attempts: Attempts
    correction: Decimal
    changed: Callable[[int], None]
    ids: events.Ids
    has_changed: bool = False
    _summary: str = attrs.field(default="", init=False)
    _condensed: set[str | None] = attrs.field(factory=set, init=False)
    _left_out: set[str | None] = attrs.field(factory=set, init=False)
    _requests: int = attrs.field(default=0, init=False)
    _last: int = attrs.field(default=-EVERY, init=False)

    async def __call__(self, given: Sequence[Message]) -> Sequence[Message]:
        """Return the messages of the next request."""
        self._requests += 1
        exchanges = given[self.base :]
        if self.limits.is_over_trigger(self._used(exchanges)):
            await self._condense(exchanges)
        if not self._condensed and not self._left_out:
            return given
        self.has_changed = True
        self.changed(self._used(exchanges))
        return [*given[: self.base], *self._block(), *self._verbatim(exchanges)]

    async def _condense(self, exchanges: Sequence[Message]) -> None:
        complete = [each for each in self._verbatim(exchanges) if is_complete(each)]
        why = self._why_not(complete, exchanges)
        if why is not None:
            events.context_checkpoint_skipped(why=why, **self.ids)
            if why != "no_gain":
                self._leave_out(exchanges)
            return
        before = self._used(exchanges)
        batch = complete[:-KEPT]
        self.attempts.made += 1
        self._last = self._requests
        try:
            summary = await self._summarize(batch)
        except SummarizerFailed as failed:
            left_out = self._leave_out(exchanges)
            events.context_checkpoint_failed(error=failed.code, left_out=left_out, **self.ids)
            return
        self._adopt(summary, batch, exchanges, before)

    def _why_not(self, complete: Sequence[Message], exchanges: Sequence[Message]) -> str | None:
        """Return why nothing is condensed now, or None."""
        if len(complete) < LEAST:
            return "too_few"
        if self._requests - self._last < EVERY:
            return "too_soon"
        if self.attempts.is_spent:
            return "max_loops"
        batch = self.sizer.messages(complete[:-KEPT])
        if self._scale(batch) * _LEAST_GAIN < self._used(exchanges):
            return "no_gain"
        return None

    def _adopt(
        self, summary: str, batch: Sequence[Message], exchanges: Sequence[Message], before: int
    ) -> None:
        """Use a summary unless it gains too little."""
        earlier = self._summary, set(self._condensed)
        self._summary = summary
        self._condensed.update(message.id for message in batch)
        after = self._used(exchanges)
        if (before - after) * _LEAST_GAIN < before:
            self._summary, self._condensed = earlier
            events.context_checkpoint_skipped(why="no_gain", **self.ids)
            return
        events.context_checkpointed(exchanges=len(batch), before=before, after=after, **self.ids)

    async def _summarize(self, batch: Sequence[Message]) -> str:
        until = self.clock.now() + self.sizer.policy.turn_deadline
        summarizing = await self.summarizing()
        return await summarizing.summarize(self._summary, batch, until=until, note=_nothing)

    def _leave_out(self, exchanges: Sequence[Message]) -> int:
        """Leave out the oldest complete exchanges until the rest fits; return how many."""
        count = 0
        for exchange in self._verbatim(exchanges):
            if self._used(exchanges) <= self.limits.cap:
                break
            if is_complete(exchange):
                self._left_out.add(exchange.id)
                count += 1
        return count

    def _used(self, exchanges: Sequence[Message]) -> int:
        sent = self.sizer.messages([*self._block(), *self._verbatim(exchanges)])
        return self.base_used + self._scale(sent)

    def _verbatim(self, exchanges: Sequence[Message]) -> list[Message]:
        gone = self._condensed | self._left_out
        return [each for each in exchanges if each.id not in gone]

    def _block(self) -> list[Message]:
        texts = [frame_summary(self._summary), gap_line(len(self._left_out))]
        text = "\n\n".join(each for each in texts if each)
        return [Message(BLOCK_ID, "user", (TextPart(text),))] if text else []

    def _scale(self, size: int) -> int:
        return int((size * self.correction).to_integral_value(rounding=ROUND_CEILING))


def is_complete(exchange: Message) -> bool:
    """Tell whether a message of the model has tool calls, and a result for each."""
    parts = read_parts(exchange.parts)
    called = {part.id for part in parts if isinstance(part, ToolCallPart)}
    answered = {part.id for part in parts if isinstance(part, ToolResultPart)}
    return bool(called) and called <= answered


async def _nothing(_code: str) -> None:
    """Keep no account: what fails inside a turn is forgotten with it."""
