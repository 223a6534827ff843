"""The callable driver: a function of the application answers."""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import Any

from vitehub_chat.agent.driver import DriverCall, ToolSpec
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.events import Done, DriverEvent, TextDelta

Run = Callable[[DriverCall], Any]
"""Takes a call; gives a text, an awaitable of one, or an async iterator of texts and events."""

_ALLOWED = "a text, an awaitable, or an async iterator of texts and driver events"


class CallableDriver:
    """Asks a function, on the event loop: one that blocks stops everything else.

    A text that the function gives is one part of the answer. Of an async iterator each text is a
    delta, and a text after an event begins a new part. `Done` ends the answer; without one it ends
    with `stop`. An async generator is closed when the answer ends, is cancelled or is given up.
    """

    kind = "callable"
    profile: str | None = None
    model: str | None = None
    window_tokens: int | None = None
    tools: Sequence[ToolSpec] = ()

    def __init__(self, run: Run) -> None:
        self._run = run

    async def stream(self, call: DriverCall, /) -> AsyncIterator[DriverEvent]:
        """Answer with what the function gives.

        Raises:
            ConfigError: It gave something else than a text or an event; the error names the type.
        """
        answer = self._run(call)
        if inspect.isawaitable(answer):
            answer = await answer
        reader = _Reader()
        if isinstance(answer, str):
            for event in reader.read(answer):
                yield event
        elif isinstance(answer, AsyncIterable):
            async with _closing(answer):
                async for item in answer:
                    for event in reader.read(item):
                        yield event
                    if reader.done:
                        return
        else:
            raise _wrong("gave", answer, _ALLOWED)
        yield Done("stop")

    async def aclose(self) -> None:
        """Do nothing; it holds nothing."""


def create(config: Mapping[str, Any] | Run) -> CallableDriver:
    """Build a driver from a function.

    Args:
        config: The function, or a mapping with it as `run`. It takes the `DriverCall` and gives a
            text, an awaitable, or an async iterator of texts and driver events.

    Raises:
        ConfigError: No function, or an unknown name.
    """
    options = dict(config) if isinstance(config, Mapping) else {"run": config}
    run = options.pop("run", None)
    for name in options:
        raise ConfigError.unknown_name(str(name), ("run",), path=f"driver.{name}")
    if not callable(run):
        raise ConfigError(
            f"must be a callable, not {type(run).__name__!r}",
            path="driver.run",
            hint=f"it takes the call and gives {_ALLOWED}",
        )
    _check_takes_call(run)
    return CallableDriver(run)


def _check_takes_call(run: Run) -> None:
    """Refuse a function that cannot be given a call; what tells nothing of itself may be called."""
    try:
        inspect.signature(run).bind(object())
    except ValueError:
        return
    except TypeError:
        raise ConfigError(
            "has to take the call as its only argument",
            path="driver.run",
            hint="write it as `def answer(call): ...`",
        ) from None


class _Reader:
    """Turns what the function gives into events, one item after the other."""

    def __init__(self) -> None:
        self.done = False
        self._part = 1

    def read(self, item: object) -> Iterator[DriverEvent]:
        if isinstance(item, str):
            if item:
                yield TextDelta(f"text-{self._part}", item)
        elif isinstance(item, DriverEvent):
            self._part += 1
            self.done = isinstance(item, Done)
            yield item
        else:
            raise _wrong("yielded", item, "texts and driver events")


@asynccontextmanager
async def _closing(items: AsyncIterable[object]) -> AsyncIterator[None]:
    """Close an async generator at the end; other iterators have nothing to close."""
    try:
        yield
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()


def _wrong(verb: str, value: object, allowed: str) -> ConfigError:
    hint = f"it has to give {allowed}"
    if isinstance(value, Generator):
        hint += "; write `async def` to yield them"
    return ConfigError(
        f"the function {verb} a value of type {type(value).__name__!r}",
        path="driver.run",
        hint=hint,
    )
