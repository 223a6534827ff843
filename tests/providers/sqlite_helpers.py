"""What the tests of the SQLite provider share: short messages, and a look below the surface."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.state.providers.sqlite.state import SqliteAgentState
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import NewRow, SessionRequest

PREFIX = "vitehub_agent_state_"
KEY = ConversationKey(None, "helper", "portal", "t1")
SESSION = SessionRequest(conversation=KEY)


def row(message_id: str, text: str = "hi") -> NewRow:
    return NewRow(message=Message(message_id, "user", ({"type": "text", "text": text},)))


async def append(state: SteppedAgentState, *message_ids: str) -> list[int]:
    rows = await state.transcripts.append(SESSION, rows=[row(each) for each in message_ids])
    return [each.seq for each in rows]


async def stored(state: SteppedAgentState) -> list[tuple[int, str | None]]:
    batches = [batch async for batch in state.transcripts.export(KEY)]
    return [(each.seq, each.message.id) for batch in batches for each in batch.rows]


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Ask the file itself, over a connection of its own."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql.replace("$", PREFIX)).fetchall()


def change(path: Path, sql: str) -> None:
    """Change the file behind the back of the provider."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql.replace("$", PREFIX))


def files_in(folder: Path) -> dict[str, bytes]:
    """Return what the files of a folder hold."""
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def do_nothing(_tx: Transaction) -> None:
    """Be a step that only passes through the worker."""


def connection_of(state: SqliteAgentState, worker: str = "writer") -> sqlite3.Connection:
    """Return the connection of an open state; it has one once it has done something."""
    handle = getattr(state._engines[os.getpid()], worker)._handle
    connection: sqlite3.Connection = handle._connection
    return connection


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a script in a process of its own, with pipes to talk to it."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
