"""A process that forks a child for every point of a flush; each child dies there by SIGKILL.

    python killed.py FOLDER POINT...

leaves under FOLDER/POINT what the child left, and after it another turn, a day later.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from vitehub_chat import chat, define_agent, open_agent_state, plugins, run_agent_trigger
from vitehub_chat.agent.agent import Agent
from vitehub_chat.conversation import events
from vitehub_chat.conversation.memory.inventory import NoteInventory
from vitehub_chat.model.clock import Clock, SystemClock
from vitehub_chat.state.stores.summaries import Summaries

SAID = "x" * 100
ROWS = 12


class Ahead:
    """The clock of the machine, some days ahead."""

    def __init__(self, days: int) -> None:
        self._ahead = timedelta(days=days)
        self._clock: Clock = SystemClock()

    def now(self) -> datetime:
        """Return the time."""
        return self._clock.now().astimezone(UTC) + self._ahead


def die() -> None:
    """End this process as nothing can prevent."""
    os.kill(os.getpid(), signal.SIGKILL)


def _die_after(owner: Any, name: str) -> None:
    call = getattr(owner, name)

    async def call_and_die(*args: Any, **options: Any) -> None:
        await call(*args, **options)
        die()

    setattr(owner, name, call_and_die)


def _die_before(owner: Any, name: str) -> None:
    def die_at_once(*_args: Any, **_options: Any) -> None:
        die()

    setattr(owner, name, die_at_once)


def _die_in_the_middle(owner: Any, name: str) -> None:
    write = getattr(owner, name)

    def write_half(descriptor: int, data: Any) -> None:
        write(descriptor, bytes(data)[: len(data) // 2])
        die()

    setattr(owner, name, write_half)


POINTS: dict[str, Callable[[], None]] = {
    "pending": lambda: _die_after(Summaries, "set_pending"),
    "begun": lambda: _die_after(NoteInventory, "begin"),
    "half": lambda: _die_in_the_middle(os, "write"),
    "written": lambda: _die_before(os, "fsync"),
    "synced": lambda: _die_before(NoteInventory, "go_on"),
    "noted": lambda: _die_after(NoteInventory, "go_on"),
    "committed": lambda: _die_after(Summaries, "commit_roll"),
}


def agent_on(state: Any, root: Path) -> Agent:
    """Return an agent that condenses early and archives before."""
    capability = chat(
        trigger_history={"source": "transcript", "max_messages": 1000},
        memory={"root": str(root), "on_error": "block"},
        context={
            "estimator": "runes",
            "limit": 1000,
            "message_overhead": 0,
            "frame_overhead": 0,
            "min_verbatim": 4,
            "summary_max": 200,
        },
    )
    driver: Any = {"run": lambda _call: "an answer"}
    return define_agent(name="killed", driver=driver, capabilities=[capability], state=state)


async def run_turn(folder: Path, days: int) -> None:
    """Run a turn on what is stored, some days later."""
    async with open_agent_state(f"file:{folder}/state.db", clock=Ahead(days)) as state:
        agent = agent_on(state, folder / "memory")
        given = {"messages": [_message(f"turn {days}")], "run": {"threadId": "t"}}
        result = await run_agent_trigger(agent, "chat.message", given)
        assert result.context_budget is not None
        assert result.context_budget.reason is None, result.context_budget


async def _store(folder: Path) -> None:
    async with open_agent_state(f"file:{folder}/state.db") as state:
        said = [_message(f"m{number}", SAID) for number in range(ROWS)]
        await agent_on(state, folder / "memory").conversation("t").append(said)


def _message(message_id: str, text: str = "hello") -> dict[str, Any]:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


def _in_a_child(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _import_what_turns_need() -> None:
    """Import what is imported late, so that not every child does; starts no thread."""
    for registry, name in ((plugins.state_providers, "file"), (plugins.state_providers, "memory")):
        registry.get(name)
    events.event_logger(events.LAYER)


def main() -> None:
    """Let a child die at every point, and print how it ended."""
    home, *points = sys.argv[1:]
    _import_what_turns_need()
    stored = Path(home, "stored")
    stored.mkdir()
    _in_a_child(lambda: asyncio.run(_store(stored)))
    for point in points:
        folder = Path(home, point)
        shutil.copytree(stored, folder)

        def work(folder: Path = folder, point: str = point) -> None:
            POINTS[point]()
            asyncio.run(run_turn(folder, 0))

        print(point, _in_a_child(work), flush=True)


if __name__ == "__main__":
    main()
