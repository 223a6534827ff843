"""Killing a PostgreSQL server as `kill -9` does."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.providers.postgres_server import PostgresServer


def kill_postgres(server: PostgresServer) -> None:
    """End a server and everything that it has started."""
    note = server._folder / "data" / "postmaster.pid"
    first = int(note.read_text().split()[0])
    # Stopped before, so that it starts nothing that would outlive it.
    os.kill(first, signal.SIGSTOP)
    others = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    pids = [first, *map(int, others)]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while any(map(_is_alive, pids)):
        os.sched_yield()
    # Or a process that is dead, but that nobody has waited for yet, would be taken for a server.
    for left in (note, *server._folder.glob(".s.PGSQL.*")):
        left.unlink()


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
