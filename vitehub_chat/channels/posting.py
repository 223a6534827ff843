"""Posting: an answer on a platform that posts and edits texts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Protocol

from vitehub_chat.channels.values import DeliveryPlan, Sent
from vitehub_chat.model.events import (
    AgentEvent,
    RunFailed,
    RunFinished,
    RunInterrupted,
    TextDelta,
)
from vitehub_chat.model.model_messages import has_visible_text

BETWEEN_PARTS = "\n\n"


class Poster(Protocol):
    """A place to post texts to, such as one thread."""

    async def post(self, text: str, /) -> str:
        """Post a text and return the platform's id of it."""

    async def edit(self, message_id: str, text: str, /) -> None:
        """Change what a posted message says; called only if it can be."""


async def post_reply(
    reply: AsyncIterator[AgentEvent],
    delivery: DeliveryPlan,
    poster: Poster,
    *,
    can_edit: bool = True,
    max_length: int | None = None,
) -> Sequence[Sent]:
    """Carry out a delivery plan with texts, and return what was posted.

    The placeholder comes first and becomes the answer where it can be edited. A growing answer is
    edited once per interval at most, and once more at its end. An empty answer leaves what was
    posted. The text of an error takes the place of the placeholder, or is posted behind what was
    said so far.

    Args:
        reply: The events of the turn.
        delivery: The plan.
        poster: Where to post.
        can_edit: Whether `poster.edit` works.
        max_length: The longest text of one post, in characters; a longer one is split.
    """
    draft = _Draft(reply)
    sheet = _Sheet(poster, can_edit=can_edit, max_length=max_length)
    reading = asyncio.create_task(draft.read())
    try:
        if delivery.placeholder is not None:
            await sheet.put_placeholder(delivery.placeholder)
        while delivery.mode == "stream" and can_edit and await draft.wait_for_more():
            await sheet.write(draft.text)
            await draft.wait_for_end(delivery.update_interval.total_seconds())
        await reading
    finally:
        reading.cancel()
    await _put_end(draft, sheet, delivery)
    return sheet.sent


async def _put_end(draft: _Draft, sheet: _Sheet, delivery: DeliveryPlan) -> None:
    if not draft.has_failed:
        await sheet.write(draft.text)
        return
    text = draft.error_text if draft.has_end else delivery.error_text
    if text is not None and has_visible_text(text):
        await sheet.write_error(text)


class _Draft:
    """What was said so far."""

    def __init__(self, reply: AsyncIterator[AgentEvent]) -> None:
        self.has_end = False
        self.has_failed = True
        self.error_text: str | None = None
        self._reply = reply
        self._parts: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()

    @property
    def text(self) -> str:
        texts = (text for text in self._parts.values() if has_visible_text(text))
        return BETWEEN_PARTS.join(texts)

    async def read(self) -> None:
        """Follow the turn to its end."""
        try:
            async for event in self._reply:
                self._take(event)
        finally:
            self._ended.set()
            self._changed.set()

    async def wait_for_more(self) -> bool:
        """Wait until there is more text; False at the end."""
        await self._changed.wait()
        self._changed.clear()
        return not self._ended.is_set()

    async def wait_for_end(self, seconds: float) -> None:
        """Wait for the end, but no longer than some time."""
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            return

    def _take(self, event: AgentEvent) -> None:
        match event:
            case TextDelta(part_id, text):
                self._parts[part_id] = self._parts.get(part_id, "") + text
                self._changed.set()
            case RunFinished() | RunInterrupted():
                self.has_end, self.has_failed = True, False
            case RunFailed():
                self.has_end, self.error_text = True, event.text


class _Sheet:
    """The posts of one answer."""

    def __init__(self, poster: Poster, *, can_edit: bool, max_length: int | None) -> None:
        self.sent: list[Sent] = []
        self._poster = poster
        self._can_edit = can_edit
        self._max_length = max_length
        self._mine = 0
        self._has_text = False

    async def put_placeholder(self, text: str) -> None:
        if has_visible_text(text):
            await self._post(text)
            self._mine = 0 if self._can_edit else len(self.sent)

    async def write(self, text: str) -> None:
        """Have the posts say a text; an empty one changes nothing."""
        if not has_visible_text(text):
            return
        self._has_text = True
        for at, piece in enumerate(_split(text, self._max_length), self._mine):
            if at >= len(self.sent):
                await self._post(piece)
            elif self.sent[at].text != piece:
                await self._poster.edit(self.sent[at].message_id, piece)
                self.sent[at] = Sent(message_id=self.sent[at].message_id, text=piece)

    async def write_error(self, text: str) -> None:
        """Say what went wrong, without taking back what was said."""
        if self._has_text:
            self._mine = len(self.sent)
        await self.write(text)

    async def _post(self, text: str) -> None:
        self.sent.append(Sent(message_id=await self._poster.post(text), text=text))


def _split(text: str, max_length: int | None) -> Iterator[str]:
    """Yield pieces of a text that are not longer than allowed, cut at the end of a line or word."""
    while max_length is not None and len(text) > max_length:
        end = max(text.rfind("\n", 1, max_length + 1), text.rfind(" ", max_length // 2, max_length))
        end = end if end > max_length // 2 else max_length
        yield text[:end]
        text = text[end:].lstrip("\n ")
    if text:
        yield text
