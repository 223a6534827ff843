"""Summarizing: one attempt at a new summary, in as many calls as its input needs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime

import attrs

from vitehub_chat.conversation.control import guarded
from vitehub_chat.conversation.sizing import Sizer
from vitehub_chat.conversation.summarizers import prompt_size_of
from vitehub_chat.formatting.cleaning import clean
from vitehub_chat.formatting.summary_prompts import head_and_tail, shorten_results
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.context_policy import ContextPolicy, Summarizer
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import has_visible_text
from vitehub_chat.selection.clipping import clip
from vitehub_chat.selection.limits import Limits

NoteFailure = Callable[[str], Awaitable[None]]
"""Counts a failed call, by a code."""

_LEAST_PART = 4
"""A call takes a quarter of the limit at least, however large summary and prompt are."""


class SummarizerFailed(Exception):  # noqa: N818 - an outcome, told as a reason
    """No call of the summarizer gave a summary; `code` says what became of the last one."""

    def __init__(self, code: str, *, is_late: bool = False) -> None:
        """Keep a code; `is_late`: there were tries left, but no time."""
        super().__init__(code)
        self.code = code
        self.is_late = is_late


@attrs.define(kw_only=True)
class Summarizing:
    """Asks one summarizer.

    Attributes:
        calls: How many calls were made.
    """

    summarizer: Summarizer
    sizer: Sizer
    limits: Limits
    policy: ContextPolicy
    clock: Clock
    calls: int = 0

    async def summarize(
        self, previous: str, batch: Sequence[Message], *, until: datetime, note: NoteFailure
    ) -> str:
        """Return the summary that replaces the previous one and a batch, cleaned and clipped.

        A batch that is too long for one call takes several; a message that is too long for one is
        shown without its middle.

        Raises:
            SummarizerFailed: A call failed once more than it may; nothing is left of the others.
        """
        summary = previous
        for part in self._parts(previous, batch):
            summary = await self._ask_again(summary, part, until, note)
        return summary

    def _parts(self, previous: str, batch: Sequence[Message]) -> Iterator[list[Message]]:
        room = self._room(previous)
        part: list[Message] = []
        left = room
        for message in batch:
            shown = shorten_results(message)
            size = self.sizer.message(shown)
            if size > room:
                shown = head_and_tail(shown, room, self.sizer.text)
                size = min(self.sizer.message(shown), room)
            if size > left:
                yield part
                part, left = [], room
            part.append(shown)
            left -= size
        yield part

    def _room(self, previous: str) -> int:
        summary = max(self.limits.summary_max, self.sizer.text(previous))
        room = self.limits.limit - summary - prompt_size_of(self.summarizer)
        return max(room, self.limits.limit // _LEAST_PART, 1)

    async def _ask_again(
        self, previous: str, part: Sequence[Message], until: datetime, note: NoteFailure
    ) -> str:
        tries_left = self.policy.retries
        while True:
            self.calls += 1
            try:
                return self._fitting(await self._ask(previous, part, until))
            except SummarizerFailed as failed:
                await note(failed.code)
                is_late = self.clock.now() >= until
                if not tries_left or is_late:
                    raise SummarizerFailed(failed.code, is_late=tries_left > 0) from failed
                tries_left -= 1

    async def _ask(self, previous: str, part: Sequence[Message], until: datetime) -> object:
        now = self.clock.now()
        limit = max(min(self.policy.summarizer_timeout, until - now).total_seconds(), 0)
        deadline = min(now + self.policy.summarizer_timeout, until)
        try:
            async with asyncio.timeout(limit):
                with guarded():
                    return await self.summarizer(
                        previous, part, max_size=self.limits.summary_max, deadline=deadline
                    )
        except TimeoutError as error:
            raise SummarizerFailed("timeout") from error
        except Exception as error:
            raise SummarizerFailed(type(error).__name__) from error

    def _fitting(self, answer: object) -> str:
        if not isinstance(answer, str):
            raise SummarizerFailed("no_text")
        summary = clean(answer)
        if not has_visible_text(summary):
            raise SummarizerFailed("blank")
        clipped = clean(clip(summary, self.limits.summary_max, self.sizer.text))
        if not has_visible_text(clipped):
            raise SummarizerFailed("blank")
        return clipped
