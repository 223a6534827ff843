"""Connections: opening a state file with the settings that everything here relies on."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import Final

from vitehub_chat.errors import StateError
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.sqlite.location import Location

JOURNAL_SIZE_LIMIT: Final = 16 * 1024 * 1024
CACHED_STATEMENTS: Final = 256
_RETRY_SECONDS: Final = 0.005

_creating: Final = threading.Lock()


def connect(location: Location, options: StateOptions, *, is_reader: bool) -> sqlite3.Connection:
    """Open a connection and set what holds for it alone; the file is not touched yet.

    It is not bound to a thread: a fork closes it from the thread that forks.
    """
    path = location.path
    connection = sqlite3.connect(
        ":memory:" if path is None else f"{path.as_uri()}?mode=rw",
        uri=True,
        timeout=options.busy_timeout_ms / 1000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=CACHED_STATEMENTS,
    )
    try:
        _set_up(connection, options, is_reader=is_reader)
    except BaseException:
        connection.close()
        raise
    return connection


def create_file(path: Path) -> None:
    """Create an empty file that only its owner can read, and its folder; no-op if it is there.

    Closing any handle of a file drops the locks that the whole process has on it, so nobody here
    may open the file before the handle that creates it is closed.
    """
    with _creating:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        except FileExistsError:
            return
        os.close(handle)


def prepare_file(connection: sqlite3.Connection, busy_timeout_ms: int) -> None:
    """Set what holds for the file: pages can be given back, and a log is written ahead.

    Raises:
        StateError: The file system cannot share the memory that the log needs.
    """
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL").close()
    deadline = time.monotonic() + busy_timeout_ms / 1000
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            # Two that switch at once block each other; SQLite does not wait in that case.
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            break
    if mode not in {"wal", "memory"}:
        raise StateError(
            "the state file is where SQLite cannot write ahead",
            hint="put it on a local file system",
        )


def checkpoint(connection: sqlite3.Connection, busy_timeout_ms: int) -> bool:
    """Move the log into the file and empty it as far as nobody reads it; waits for nobody.

    Tells whether nothing is left in it.
    """
    connection.execute("PRAGMA busy_timeout = 0").close()
    try:
        is_busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        connection.execute(f"PRAGMA busy_timeout = {busy_timeout_ms}").close()
    return not is_busy


def _set_up(connection: sqlite3.Connection, options: StateOptions, *, is_reader: bool) -> None:
    is_careful = options.durability == "full" and not is_reader
    for pragma in (
        f"synchronous = {'FULL' if is_careful else 'NORMAL'}",
        "foreign_keys = ON",
        "secure_delete = ON",
        "temp_store = MEMORY",
        f"journal_size_limit = {JOURNAL_SIZE_LIMIT}",
        "trusted_schema = OFF",
        f"query_only = {'ON' if is_reader else 'OFF'}",
    ):
        connection.execute(f"PRAGMA {pragma}").close()
