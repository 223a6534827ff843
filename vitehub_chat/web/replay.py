"""Replay: what a run has said so far, for followers that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import attrs

from vitehub_chat.model.json_text import compact_json
from vitehub_chat.streams.chunks import Chunk

MAX_REPLAYED: Final = 8 * 1024 * 1024
"""Above so many characters nobody can begin to follow any more."""

_BLOCK = 4096
_GROWING = {
    "text-delta": ("id", "delta"),
    "reasoning-delta": ("id", "delta"),
    "tool-input-delta": ("toolCallId", "inputTextDelta"),
    "TEXT_MESSAGE_CONTENT": ("messageId", "delta"),
    "REASONING_MESSAGE_CONTENT": ("messageId", "delta"),
    "TOOL_CALL_ARGS": ("toolCallId", "delta"),
}
_IDS = ("id", "toolCallId", "messageId")


class _Item:
    """One chunk; a delta grows until its part ends."""

    def __init__(self, chunk: Chunk, grows: str | None) -> None:
        self.chunk = chunk
        self.grows = grows
        self.is_open = grows is not None
        self._sealed: list[str] = []
        self._sealed_length = 0
        self._tail = "" if grows is None else chunk[grows]

    @property
    def length(self) -> int:
        return self._sealed_length + len(self._tail)

    def grow(self, text: str) -> None:
        self._tail += text
        if len(self._tail) >= _BLOCK:
            self._sealed.append(self._tail)
            self._sealed_length += len(self._tail)
            self._tail = ""

    def since(self, offset: int) -> Chunk:
        """Return the chunk with what it says from an offset on."""
        if self.grows is None:
            return self.chunk
        if offset >= self._sealed_length:
            text = self._tail[offset - self._sealed_length :]
        else:
            text = ("".join(self._sealed) + self._tail)[offset:]
        return {**self.chunk, self.grows: text}


@attrs.define
class _Place:
    """How far a follower is: the next item, and how much it has of those that still grow."""

    index: int = 0
    offsets: dict[int, int] = attrs.field(factory=dict)


class ReplayBuffer:
    """The chunks of one run, the deltas of one part merged into one item.

    Memory is the size of the answer. A follower that is slow gets what came meanwhile at once.
    """

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._growing: dict[tuple[str, str], _Item] = {}
        self._size = 0
        self._is_closed = False
        self._waiting: set[asyncio.Event] = set()

    @property
    def has_begun(self) -> bool:
        """Whether there is something to follow, or nothing will ever be."""
        return bool(self._items) or self._is_closed

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said."""
        return not self._items

    @property
    def is_closed(self) -> bool:
        """Whether nothing more will be said."""
        return self._is_closed

    @property
    def is_replayable(self) -> bool:
        """Whether somebody may still begin to follow."""
        return self._size <= MAX_REPLAYED

    @property
    def size(self) -> int:
        """How many characters were said."""
        return self._size

    @property
    def items(self) -> int:
        """How many items there are."""
        return len(self._items)

    def add(self, chunk: Chunk) -> None:
        """Add a chunk; a delta of a part that is open makes its item longer."""
        names = _GROWING.get(chunk["type"])
        if names is None:
            self._end_parts(chunk)
            self._items.append(_Item(chunk, None))
            self._size += len(compact_json(chunk))
        else:
            self._grow(chunk, *names)
        self._wake()

    def close(self) -> None:
        """Say that nothing more comes; repeating does nothing."""
        self._is_closed = True
        self._wake()

    async def begun(self, timeout_s: float | None = None) -> bool:
        """Wait until there is something to follow, or that many seconds; tell which it was."""
        changed = self._enter()
        try:
            async with asyncio.timeout(timeout_s):
                while not self.has_begun:
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            return False
        else:
            return True
        finally:
            self._waiting.discard(changed)

    async def follow(self, idle_s: float | None = None) -> AsyncGenerator[Chunk | None]:
        """Yield the chunks from the start, then live; None whenever nothing came for `idle_s`."""
        changed, place = self._enter(), _Place()
        try:
            while True:
                changed.clear()
                for chunk in self._news(place):
                    yield chunk
                if changed.is_set():
                    continue
                if self._is_closed:
                    return
                try:
                    async with asyncio.timeout(idle_s):
                        await changed.wait()
                except TimeoutError:
                    yield None
        finally:
            self._waiting.discard(changed)

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """Give a reader that takes what it does not have yet whenever it likes."""
        changed = self._enter()
        try:
            yield Reader(self, changed)
        finally:
            self._waiting.discard(changed)

    def _news(self, place: _Place) -> list[Chunk]:
        """Return what a follower does not have, in order, and note that it has it now."""
        found: list[Chunk] = []
        for index in list(place.offsets):
            self._take(index, place, found)
        while place.index < len(self._items):
            self._take(place.index, place, found)
            place.index += 1
        return found

    def _take(self, index: int, place: _Place, found: list[Chunk]) -> None:
        item = self._items[index]
        offset = place.offsets.pop(index, 0)
        if item.grows is None or item.length > offset:
            found.append(item.since(offset))
        if item.is_open:
            place.offsets[index] = item.length

    def _grow(self, chunk: Chunk, id_name: str, text_name: str) -> None:
        text = chunk[text_name]
        self._size += len(text)
        item = self._growing.get((id_name, chunk[id_name]))
        if item is not None and item.chunk["type"] == chunk["type"]:
            item.grow(text)
            return
        item = self._growing[id_name, chunk[id_name]] = _Item(chunk, text_name)
        self._items.append(item)

    def _end_parts(self, chunk: Chunk) -> None:
        for name in _IDS:
            value = chunk.get(name)
            if isinstance(value, str):
                ended = self._growing.pop((name, value), None)
                if ended is not None:
                    ended.is_open = False

    def _enter(self) -> asyncio.Event:
        changed = asyncio.Event()
        self._waiting.add(changed)
        return changed

    def _wake(self) -> None:
        for changed in self._waiting:
            changed.set()


class Reader:
    """Reads a buffer in pieces, each with all that came since the one before."""

    def __init__(self, buffer: ReplayBuffer, changed: asyncio.Event) -> None:
        self._buffer = buffer
        self._changed = changed
        self._place = _Place()
        self._size = 0

    def take(self) -> list[Chunk]:
        """Return what was said since the last time, the deltas of one part in one chunk."""
        self._size = self._buffer.size
        return self._buffer._news(self._place)  # noqa: SLF001 - a part of the buffer

    async def wait(self, timeout_s: float, size: int) -> None:
        """Wait for some time, or until so many characters are new, or nothing more comes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self._buffer.is_closed and self._buffer.size - self._size < size:
                    self._changed.clear()
                    await self._changed.wait()
