"""What the tests of known faults share: agents, inputs, and a look at what is stored."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from vitehub_chat import Agent, chat, define_agent, run_agent_trigger
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.results import RunResult
from vitehub_chat.model.rows import Row

NAME = "helper"
WINDOW = {"source": "transcript", "max_messages": 20}


def key_of(thread: str = "t") -> ConversationKey:
    """Return the conversation of a thread."""
    return ConversationKey(None, NAME, None, thread)


def agent_on(state: Any, run: Callable[[DriverCall], Any] | None = None, **options: Any) -> Agent:
    """Return an agent on a state; it echoes in a few words unless a function answers."""
    driver: Any = {"run": run or (lambda call: f"re {call.text}")}
    return define_agent(name=NAME, driver=driver, capabilities=[chat(options)], state=state)


def message(text: str, message_id: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a user message whose id is its text unless it is given."""
    parts = [{"type": "text", "text": text}]
    return {"id": message_id or text, "role": "user", "parts": parts, **more}


def given(text: str, thread: str = "t", message_id: str | None = None, **more: Any) -> Any:
    """Return the input for one message; `more` are facts of the message."""
    return {"messages": [message(text, message_id, **more)], "run": {"threadId": thread}}


async def say(agent: Agent, text: str, thread: str = "t", **more: Any) -> RunResult:
    """Run one turn."""
    return await run_agent_trigger(agent, "chat.message", given(text, thread, **more))


async def rows_of(agent: Agent, thread: str = "t") -> tuple[Row, ...]:
    """Return the newest rows of a thread."""
    return (await agent.conversation(thread).history(limit=100)).items


async def texts_of(agent: Agent, thread: str = "t") -> list[str]:
    """Return the texts of a thread, checking that no number is missing."""
    rows = await rows_of(agent, thread)
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    return [row.message.text for row in rows]


def change(path: Path, sql: str, *values: object) -> int:
    """Change a state file behind the back of the provider, and return how many rows that changed.

    `$` is the table prefix.
    """
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql.replace("$", "vitehub_agent_state_"), values)
        return connection.total_changes


def run_script(script: str, *arguments: object, **variables: str) -> str:
    """Run a script in a process of its own and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@contextmanager
def processes(script: str, *arguments: Sequence[object]) -> Iterator[list[subprocess.Popen[str]]]:
    """Run a script in several processes, with pipes to talk to them; all of them must succeed."""
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", script, *map(str, mine)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for mine in arguments
    ]
    try:
        yield started
    finally:
        for process in started:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.wait(30)
            process.stdout.close()
    assert [process.returncode for process in started] == [0 for _ in started]


def tell(process: subprocess.Popen[str], line: object = "") -> None:
    """Write a line to a process."""
    assert process.stdin is not None
    print(line, file=process.stdin, flush=True)


def hear(process: subprocess.Popen[str]) -> str:
    """Read a line from a process."""
    assert process.stdout is not None
    return process.stdout.readline().strip()
