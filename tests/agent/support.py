"""What tests of agents share: inputs, drivers that keep what they got, and agents of one line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

from vitehub_chat import (
    Agent,
    Conversation,
    DriverCall,
    PreparedInvocation,
    RunResult,
    chat,
    define_agent,
    prepare_agent_trigger,
    run_agent_trigger,
)
from vitehub_chat.model.events import DriverEvent

TRANSCRIPT = {"source": "transcript", "max_messages": 50}
THREAD = {"source": "thread", "max_messages": 50}
WHEN = "2026-01-01T00:00:00Z"


def say(text: str, message_id: str | None = None, **facts: Any) -> dict[str, Any]:
    """Return a message of one text; `facts` are further keys."""
    named = {} if message_id is None else {"id": message_id}
    return {**named, "role": "user", "parts": [{"type": "text", "text": text}], **facts}


def turn(*messages: dict[str, Any], thread: str | None = "t", **fields: Any) -> dict[str, Any]:
    """Return the input of a turn in a thread; `fields` are further names of the input."""
    run = {} if thread is None else {"run": {"thread_id": thread}}
    return {"messages": list(messages), **run, **fields}


def agent_of(driver: Any, state: Any = None, **options: Any) -> Agent:
    """Return an agent with `chat(**options)`."""
    return define_agent(name="a", driver=driver, capabilities=[chat(**options)], state=state)


async def run(agent: Agent, given: dict[str, Any]) -> RunResult:
    """Run one turn of `chat.message`."""
    return await run_agent_trigger(agent, "chat.message", given)


async def prepare(given: dict[str, Any], **options: Any) -> PreparedInvocation:
    """Prepare one turn of a new agent without state and driver."""
    return await prepare_agent_trigger(agent_of(None, **options), "chat.message", given)


async def rows(conversation: Conversation) -> list[tuple[str, str, str]]:
    """Return role, text and status of the rows of a conversation."""
    page = await conversation.history(limit=100)
    return [(row.message.role, row.message.text, row.status) for row in page.items]


class Recorder:
    """A driver that keeps its calls and answers `answer 1`, `answer 2` and so on."""

    def __init__(self) -> None:
        self.calls: list[DriverCall] = []

    def __call__(self, call: DriverCall) -> str:
        self.calls.append(call)
        return f"answer {len(self.calls)}"

    @property
    def texts(self) -> list[list[str]]:
        """The texts that each call saw, the current one last."""
        return [[message.text for message in call.messages] for call in self.calls]


class Gate:
    """A driver that gives some pieces and then waits until it is opened.

    Attributes:
        calls: What it was called with.
        reached: Set once all pieces are given.
        was_cancelled: Whether it was cancelled while it waited.
    """

    def __init__(self, *pieces: str | DriverEvent) -> None:
        self.calls: list[DriverCall] = []
        self.reached = asyncio.Event()
        self.was_cancelled = False
        self._pieces = pieces
        self._opened = asyncio.Event()

    def open(self) -> None:
        """Let every call end, those to come included."""
        self._opened.set()

    async def __call__(self, call: DriverCall) -> AsyncIterator[str | DriverEvent]:
        self.calls.append(call)
        return self._answer()

    async def _answer(self) -> AsyncIterator[str | DriverEvent]:
        for piece in self._pieces:
            yield piece
        self.reached.set()
        try:
            await self._opened.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise


class Failing:
    """A driver that raises an error after some pieces, `times` times, and then answers `fine`."""

    def __init__(self, error: Exception, *pieces: str, times: int = 1) -> None:
        self.calls: list[DriverCall] = []
        self._error = error
        self._pieces = pieces
        self._times = times

    async def __call__(self, call: DriverCall) -> AsyncIterator[str]:
        self.calls.append(call)
        return self._answer(fails=len(self.calls) <= self._times)

    async def _answer(self, *, fails: bool) -> AsyncIterator[str]:
        if not fails:
            yield "fine"
            return
        for piece in self._pieces:
            yield piece
        raise self._error


class Waiting(logging.Handler):
    """Counts the messages that were accepted and have to wait."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._count = 0
        self._changed = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Count the event of a message that found its lock taken."""
        if record.getMessage() == "chat.lock.contended":
            self._count += 1
            self._changed.set()

    async def reach(self, count: int) -> None:
        """Wait until so many messages have had to wait."""
        while self._count < count:
            self._changed.clear()
            await self._changed.wait()
