"""The replay buffer: compact, complete and in order for every follower."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitehub_chat.web import replay
from vitehub_chat.web.replay import ReplayBuffer

Chunk = dict[str, Any]


def start(part: str) -> Chunk:
    return {"type": "text-start", "id": part}


def delta(part: str, text: str) -> Chunk:
    return {"type": "text-delta", "id": part, "delta": text}


def end(part: str) -> Chunk:
    return {"type": "text-end", "id": part}


def tool(call: str, text: str) -> Chunk:
    return {"type": "tool-input-delta", "toolCallId": call, "inputTextDelta": text}


async def replayed(buffer: ReplayBuffer) -> list[Chunk]:
    return [chunk async for chunk in buffer.follow() if chunk is not None]


async def test_the_deltas_of_a_part_are_one_item() -> None:
    buffer = ReplayBuffer()
    for chunk in (start("1"), *(delta("1", "ab") for _ in range(5000)), end("1")):
        buffer.add(chunk)
    buffer.close()
    assert await replayed(buffer) == [start("1"), delta("1", "ab" * 5000), end("1")]


async def test_parts_that_alternate_are_one_item_each() -> None:
    buffer = ReplayBuffer()
    for _ in range(100):
        buffer.add(tool("a", "1"))
        buffer.add(tool("b", "2"))
    assert buffer.items == 2


async def test_a_part_that_is_opened_again_is_another_item() -> None:
    buffer = ReplayBuffer()
    said = [start("1"), delta("1", "a"), end("1"), start("1"), delta("1", "b"), end("1")]
    for chunk in said:
        buffer.add(chunk)
    buffer.close()
    assert await replayed(buffer) == said


async def test_a_live_follower_gets_each_delta_before_the_end_of_its_part() -> None:
    buffer = ReplayBuffer()
    stream = buffer.follow()
    buffer.add(tool("a", "1"))
    buffer.add(tool("b", "2"))
    assert [await anext(stream), await anext(stream)] == [tool("a", "1"), tool("b", "2")]
    buffer.add(tool("a", "3"))
    called = {"type": "tool-input-available", "toolCallId": "a", "input": {}}
    buffer.add(called)
    assert [await anext(stream), await anext(stream)] == [tool("a", "3"), called]
    buffer.close()
    assert [chunk async for chunk in stream] == []


async def test_a_silent_run_is_told_as_idle() -> None:
    buffer = ReplayBuffer()
    stream = buffer.follow(0.001)
    assert await anext(stream) is None
    buffer.add(start("1"))
    assert await anext(stream) == start("1")
    await stream.aclose()


async def test_waiting_for_the_beginning_has_a_limit() -> None:
    buffer = ReplayBuffer()
    assert await buffer.begun(0.001) is False
    buffer.close()
    assert await buffer.begun() is True


async def test_an_answer_that_is_too_large_cannot_be_replayed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay, "MAX_REPLAYED", 100)
    buffer = ReplayBuffer()
    buffer.add(delta("1", "a" * 100))
    assert buffer.is_replayable
    buffer.add(delta("1", "a"))
    assert not buffer.is_replayable


class Reader:
    """Reads a buffer as fast as a script says."""

    def __init__(self, buffer: ReplayBuffer) -> None:
        self.got: dict[str, str] = {}
        self.order: list[str] = []
        self._stream = buffer.follow()

    async def read(self) -> bool:
        try:
            chunk = await anext(self._stream)
        except StopAsyncIteration:
            return False
        assert chunk is not None
        part = chunk["id"]
        if chunk["type"] == "text-delta":
            self.got[part] = self.got.get(part, "") + chunk["delta"]
        self.order.append(f"{chunk['type']} {part}")
        return True


@given(
    parts=st.lists(
        st.tuples(st.sampled_from("abc"), st.text("xyz", min_size=1, max_size=4)), max_size=30
    ),
    pauses=st.lists(st.integers(0, 3), max_size=30),
)
def test_every_follower_gets_every_part_whole(
    parts: list[tuple[str, str]], pauses: list[int]
) -> None:
    async def tell() -> None:
        buffer, whole = ReplayBuffer(), dict[str, str]()
        reader = Reader(buffer)
        for index, (part, text) in enumerate(parts):
            if part not in whole:
                buffer.add(start(part))
            whole[part] = whole.get(part, "") + text
            buffer.add(delta(part, text))
            for _ in range(pauses[index] if index < len(pauses) else 0):
                # Reading is only asked for where something has to come.
                if reader.got != whole:
                    await reader.read()
        for part in whole:
            buffer.add(end(part))
        buffer.close()
        late = Reader(buffer)
        for each in (reader, late):
            while await each.read():
                continue
            assert each.got == whole
            for part in whole:
                own = [kind.split()[0] for kind in each.order if kind.endswith(f" {part}")]
                assert (own[0], own[-1]) == ("text-start", "text-end")

    asyncio.run(tell())
