"""The callable driver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from vitehub_chat.agent.driver import Driver, DriverCall
from vitehub_chat.agent.drivers.callable import create
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.events import Done, DriverEvent, TextDelta, ToolCall, ToolResult
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import TextPart

CALL = DriverCall(messages=(Message("u1", "user", (TextPart("hi"),)),))


async def answer(driver: Driver) -> list[DriverEvent]:
    return [event async for event in driver.stream(CALL)]


async def later(call: DriverCall) -> str:
    await asyncio.sleep(0)
    return call.text.upper()


async def pieces(call: DriverCall) -> AsyncIterator[str]:
    yield call.text
    yield ""
    yield "!"


async def gives_pieces(call: DriverCall) -> AsyncIterator[str]:
    return pieces(call)


class Words:
    """An iterator that has nothing to close."""

    def __init__(self) -> None:
        self._left = ["a", "b"]

    def __aiter__(self) -> Words:
        return self

    async def __anext__(self) -> str:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop(0)


@pytest.mark.parametrize(
    ("run", "texts"),
    [
        (lambda call: call.text.upper(), ["HI"]),
        (later, ["HI"]),
        (pieces, ["hi", "!"]),
        (gives_pieces, ["hi", "!"]),
        (lambda _call: Words(), ["a", "b"]),
        (lambda _call: "", []),
    ],
)
async def test_text_is_the_answer_however_it_is_given(
    run: Callable[[DriverCall], Any], texts: list[str]
) -> None:
    deltas = [TextDelta("text-1", text) for text in texts]
    assert await answer(create({"run": run})) == [*deltas, Done("stop")]


async def test_text_after_an_event_begins_a_new_part_and_done_ends_the_answer() -> None:
    closed = []

    async def run(_call: DriverCall) -> AsyncIterator[str | DriverEvent]:
        try:
            yield "looking"
            yield ToolCall("c1", "search", {"q": "x"})
            yield ToolResult("c1", "search", ["found"])
            yield "found"
            yield Done("length")
            yield "never"
        finally:
            closed.append(True)

    assert await answer(create(run)) == [
        TextDelta("text-1", "looking"),
        ToolCall("c1", "search", {"q": "x"}),
        ToolResult("c1", "search", ["found"]),
        TextDelta("text-3", "found"),
        Done("length"),
    ]
    assert closed == [True]


async def test_a_generator_is_closed_when_the_consumer_stops() -> None:
    closed = []

    async def run(_call: DriverCall) -> AsyncIterator[str]:
        try:
            yield "one"
            yield "two"
        finally:
            closed.append(True)

    stream: Any = create(run).stream(CALL)
    assert await anext(stream) == TextDelta("text-1", "one")
    await stream.aclose()
    assert closed == [True]


async def test_a_generator_sees_the_cancellation() -> None:
    seen: list[str] = []
    started = asyncio.Event()

    async def run(_call: DriverCall) -> AsyncIterator[str]:
        yield "one"
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    task = asyncio.create_task(answer(create(run)))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


async def test_the_error_of_the_function_comes_through() -> None:
    def run(_call: DriverCall) -> str:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        await answer(create(run))


def sync_generator(_call: DriverCall) -> Iterator[str]:
    yield "no"


async def yields_bytes(_call: DriverCall) -> AsyncIterator[Any]:
    yield b"no"


@pytest.mark.parametrize(
    ("run", "what"),
    [
        (lambda _call: None, "gave a value of type 'NoneType'"),
        (sync_generator, "gave a value of type 'generator'.*write `async def`"),
        (yields_bytes, "yielded a value of type 'bytes'"),
    ],
)
async def test_anything_else_is_an_error_that_names_the_type(
    run: Callable[[DriverCall], Any], what: str
) -> None:
    with pytest.raises(ConfigError, match=what) as caught:
        await answer(create(run))
    assert caught.value.path == "driver.run"


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"run": 3}, "driver.run"),
        ({}, "driver.run"),
        ({"run": later, "ran": 1}, "driver.ran"),
        ({"run": lambda: "a"}, "driver.run"),
        ({"run": lambda call, _more: call}, "driver.run"),
    ],
)
def test_a_wrong_configuration_is_named(config: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        create(config)
    assert caught.value.path == path


def test_what_tells_nothing_of_its_arguments_may_take_a_call() -> None:
    unknown: Any = dict
    assert create(unknown).kind == "callable"
