"""Write the file `sqlite_N.sql`, N being the newest schema.

Run it as `python -m tests.migrations.write_sqlite_fixture`. Once a release has a schema, its file
stays as it is.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.providers.sqlite.state import SqliteAgentState
from vitehub_chat.state.sql.named import load_migrations
from vitehub_chat.state.values import NewEntry, NewRow, SessionRequest
from vitehub_chat.testing.clock import FakeClock

KEY = ConversationKey("acme", "helper", "portal", "t'1")
SESSION = SessionRequest(conversation=KEY, user_key="ann", chat_id="chat 1")
ENTRY = NewEntry(
    ticket_id="ticket 1",
    lock_key="lock 1",
    conversation=KEY,
    wanted_id=None,
    claim_id="m4",
    payload='{"text": "waits"}',
    owner="process 1",
)


async def fill(state: SqliteAgentState) -> None:
    """Use every table once."""
    messages = [Message(f"m{n}", "user", ({"type": "text", "text": f"é {n}"},)) for n in (1, 2, 3)]
    await state.transcripts.append(SESSION, rows=[NewRow(message=each) for each in messages])
    await state.summaries.save_manual(KEY, session_id=None, text="They said hello.")
    admission = await state.turns.admit(
        ENTRY,
        policy=ConcurrencyPolicy(),
        lease=timedelta(seconds=30),
        dedupe_ttl=timedelta(minutes=10),
    )
    if admission.grant is None:
        raise RuntimeError("the entry was not granted")


async def write_database(path: Path) -> None:
    """Make a database of the newest schema."""
    async with open_sqlite(str(path), clock=FakeClock()) as state:
        await fill(state)


def main() -> None:
    """Write the dump of a fresh database beside this file."""
    version = len(load_migrations("sqlite", "p_"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        asyncio.run(write_database(path))
        with closing(sqlite3.connect(path)) as connection:
            dump = "\n".join(connection.iterdump())
    Path(__file__).with_name(f"sqlite_{version}.sql").write_text(f"{dump}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
