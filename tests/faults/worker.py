"""A process that forks one child after the other; each runs turns and tells how far it is.

The child stands still at a point that it is told, so that it can be killed exactly there.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from vitehub_chat import chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.model.clock import Clock, SystemClock
from vitehub_chat.model.events import ToolCall, ToolResult
from vitehub_chat.state.contract import TurnStore

POINTS = (
    "admitting",
    "admitted",
    "recording",
    "recorded",
    "driving",
    "speaking",
    "noting",
    "noted",
    "finishing",
    "finished",
    "answered",
)
"""The moments of a turn at which a child tells how far it is."""

_STEPS = {
    "admit": POINTS[0:2],
    "record": POINTS[2:4],
    "progress": POINTS[6:8],
    "finish": POINTS[8:10],
}


class Ahead:
    """The clock of the machine, some seconds ahead."""

    def __init__(self, seconds: float) -> None:
        self._ahead = timedelta(seconds=seconds)
        self._clock: Clock = SystemClock()

    def now(self) -> datetime:
        """Return the time."""
        return self._clock.now().astimezone(UTC) + self._ahead


def write_line(*facts: object) -> None:
    """Write a line at once, so that a kill cannot cut it in two."""
    sys.stdout.flush()
    os.write(sys.stdout.fileno(), f"{json.dumps(facts)}\n".encode())


class Teller:
    """Tells points, and stands still at the one that is asked for, the n-th time it comes."""

    def __init__(self, hold: str | None = None, times: int = 1) -> None:
        self._hold = hold
        self._left = times

    def tell(self, point: str, *facts: str) -> None:
        write_line(point, *facts)
        if point == self._hold:
            self._left -= 1
            if not self._left:
                signal.pause()


class ToldTurns:
    """The turns of a store, whose steps are told before and after."""

    def __init__(self, turns: TurnStore, tell: Callable[..., None]) -> None:
        self._turns = turns
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        step = getattr(self._turns, name)
        if name not in _STEPS:
            return step
        before, after = _STEPS[name]

        async def told(*subject: Any, **more: Any) -> Any:
            self._tell(before)
            answer = await step(*subject, **more)
            self._tell(after)
            return answer

        return told


def make_driver(tell: Callable[..., None], tools: int) -> Callable[[DriverCall], Any]:
    """Return a driver that tells what it does; it calls some tools before it answers."""

    async def answer(call: DriverCall) -> AsyncIterator[Any]:
        tell("driving", call.text)
        yield "re "
        tell("speaking", call.text)
        for number in range(tools):
            yield ToolCall(f"c{number}", "look")
            yield ToolResult(f"c{number}", "look", f"seen {number}")
        yield call.text

    return answer


def said(text: str, thread: str) -> dict[str, Any]:
    """Return the input for a message whose id is its text."""
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"messages": [message], "run": {"threadId": thread}}


async def work(
    url: str,
    ahead_s: float,
    threads: dict[str, list[str]],
    hold: str | None,
    times: int = 1,
    tools: int = 1,
    *,
    together: bool = False,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Run the messages of each thread, one after the other or all at once."""
    teller = Teller(hold, times)
    async with open_agent_state(url, clock=Ahead(ahead_s), **options or {}) as state:
        state.turns = cast(Any, ToldTurns(state.turns, teller.tell))  # type: ignore[misc]
        driver = make_driver(teller.tell, tools)
        agent = define_agent(name="station", driver=driver, capabilities=[chat()], state=state)

        async def run(thread: str, text: str) -> None:
            result = await run_agent_trigger(agent, "chat.message", said(text, thread))
            teller.tell("answered", text, result.status, result.text)

        async def serve(thread: str, texts: list[str]) -> None:
            for text in texts:
                await run(thread, text)

        async with asyncio.TaskGroup() as group:
            for thread, texts in threads.items():
                for each in [[text] for text in texts] if together else [texts]:
                    group.create_task(serve(thread, each))
        await agent.aclose()


def main() -> None:
    """Fork a child for every line, say which one, and say when it is gone."""
    for line in sys.stdin:
        command = json.loads(line)
        pid = os.fork()
        if not pid:
            asyncio.run(work(**command))
            os._exit(0)
        write_line("born", pid)
        _, status = os.waitpid(pid, 0)
        write_line("gone", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
