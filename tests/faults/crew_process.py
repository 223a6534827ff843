"""A process that forks children which use a state, and tells how each of them ended.

Everything is imported once, so that hundreds of children cost little.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from typing import Any

from vitehub_chat import open_agent_state
from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import NewRow, SessionRequest
from vitehub_chat.testing.clock import FakeClock

SESSION = SessionRequest(conversation=ConversationKey(None, "helper", "portal", "t1"))


def tell(*facts: Any) -> None:
    """Write a line, whole also when others write at the same time."""
    os.write(1, f"{json.dumps([os.getpid(), *facts])}\n".encode())


def count_down(number: int) -> Callable[..., None]:
    """Return what kills this process as `kill -9` does when it is called so many times."""
    numbers = itertools.count(1)

    def step(*_facts: object) -> None:
        if next(numbers) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return step


def die_at_statement(number: int) -> None:
    """Let this process die before its SQLite statement of that number."""
    step = count_down(number)

    def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = plain(*args, **kwargs)
        connection.set_trace_callback(step)
        return connection

    plain: Callable[..., Any] = sqlite3.connect
    setattr(sqlite3, "connect", connect)  # noqa: B010  it has overloads


async def append(url: str, options: dict[str, Any], name: str, tasks: int, count: int) -> None:
    """Append in several tasks, telling number and id of each message once it is acknowledged.

    A write of unknown outcome is repeated, with the same id.
    """

    async def work(state: AgentState, task: int) -> None:
        for number in range(count):
            message_id = f"{name}-{os.getpid()}-{task}-{number}"
            message = Message(message_id, "user", ({"type": "text", "text": message_id},))
            while True:
                try:
                    [row] = await state.transcripts.append(SESSION, rows=[NewRow(message=message)])
                except StateUnavailableError as error:
                    if not error.retryable:
                        raise
                    tell("repeats", error.outcome)
                else:
                    break
            tell("stored", row.seq, message_id)

    async with open_agent_state(url, **options) as state:
        tell("opened")
        await asyncio.gather(*(work(state, task) for task in range(tasks)))


async def open_many(url: str, options: dict[str, Any], times: int, dies_at: int) -> None:
    """Open so many states of one place at once, dying on the way if wanted; no time passes."""
    if dies_at:
        die_at_statement(dies_at)

    async def use() -> None:
        async with open_agent_state(url, clock=FakeClock(), **options) as state:
            await state.transcripts.get(SESSION.conversation, message_ids=["m1"])

    await asyncio.gather(*(use() for _ in range(times)))


WORK: dict[str, Callable[..., Any]] = {"append": append, "open_many": open_many}


def live(command: dict[str, Any]) -> None:
    """Do the work of a child and end."""
    code = 1
    try:
        asyncio.run(WORK[command.pop("work")](**command))
        code = 0
    except BaseException:  # noqa: BLE001  it ends here, and whoever started it reads why
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def load_providers() -> None:
    """Load everything that the children need, before there is any."""
    for url in ("file:x", "http://127.0.0.1", "postgresql://127.0.0.1"):
        open_agent_state(url)


def main() -> None:
    """Fork the children of every line, say which, and say how they ended."""
    load_providers()
    for line in sys.stdin:
        command = json.loads(line)
        pids = []
        for _ in range(command.pop("children")):
            pid = os.fork()
            if not pid:
                live(command)
            pids.append(pid)
        tell("born", pids)
        for pid in pids:
            tell("gone", pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        tell("done")


if __name__ == "__main__":
    main()
