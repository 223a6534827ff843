"""The floor of a turn: its SQL alone, on one connection, on the thread that asks."""

from __future__ import annotations

import itertools
import json
import sqlite3
from typing import TYPE_CHECKING, Any

import attrs

from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.sqlite.connections import connect
from vitehub_chat.state.providers.sqlite.location import parse_location
from vitehub_chat.state.records import EntryRecord, LockRecord, RowRecord
from vitehub_chat.state.sql.named import load_statements

if TYPE_CHECKING:
    from collections.abc import Mapping

WINDOW = 20
_SEQ_BITS = 32
_LATER = 1 << 60
_BODY = [field.name for field in attrs.fields(RowRecord)].index("body")


class Floor:
    """Raw writes and reads in a file that a state has filled, with the settings of a state."""

    def __init__(self, url: str, thread: str, *, durability: str) -> None:
        """Open the file and find the conversation whose encoded key contains `thread`."""
        options = StateOptions.from_mapping({"durability": durability})
        self._sql: Mapping[str, str] = load_statements("sqlite", options.table_prefix)
        self._connection = connect(parse_location(url), options, is_reader=False)
        prefix = self._prefix = options.table_prefix
        found = self._fetch(
            f"SELECT key, encoded FROM {prefix}conversations WHERE encoded LIKE :thread",  # noqa: S608  our own prefix
            {"thread": f"%{thread}%"},
        )
        self._conversation_key, self._conversation = found[0]
        self._row = self._fetch_named(
            f"SELECT * FROM {prefix}rows WHERE conversation_key = :key LIMIT 1",  # noqa: S608
            {"key": self._conversation_key},
        )
        self._session = self._fetch_named(
            f"SELECT * FROM {prefix}sessions WHERE key = :key",  # noqa: S608
            {"key": self._row["session_key"]},
        )
        self._numbers = itertools.count(1)

    def copy_rows(self, copies: int) -> None:
        """Let so many other conversations have the rows of this one."""
        own = {"id", "conversation_key", "session_key"}
        others = ", ".join(name for name in self._row if name not in own)
        self._begin()
        for key in range(self._conversation_key + 1, self._conversation_key + 1 + copies):
            self._connection.execute(
                f"INSERT INTO {self._prefix}rows (id, conversation_key, session_key, {others})"  # noqa: S608
                f" SELECT (:key << {_SEQ_BITS}) + (id & {(1 << _SEQ_BITS) - 1}), :key, :key,"
                f" {others} FROM {self._prefix}rows WHERE conversation_key = :origin",
                {"key": key, "origin": self._conversation_key},
            )
        self._commit()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    async def turn_in_2_commits(self) -> object:
        """Store a user message and load the window before it, then store an answer."""
        begin, commit = self._begin, self._commit
        begin()
        seq = self._write_row()
        rows = self._load(seq)
        commit()
        begin()
        self._write_row()
        commit()
        return rows

    async def turn_in_3_commits(self) -> object:
        """Do the same between a claim with a lock and their release."""
        ticket_id = f"ticket-{next(self._numbers)}"
        entry = _entry(ticket_id, self._conversation)
        lock = LockRecord(
            lock_key=ticket_id, token=1, ticket_id=ticket_id, owner="floor", until=_LATER
        )
        self._begin()
        self._execute("entries.insert", attrs.asdict(entry))
        self._execute("locks.put", attrs.asdict(lock))
        self._commit()
        self._begin()
        seq = self._write_row()
        rows = self._load(seq)
        self._execute("entries.update", attrs.asdict(attrs.evolve(entry, state="recorded")))
        self._commit()
        self._begin()
        self._write_row()
        self._execute("entries.update", attrs.asdict(attrs.evolve(entry, state="ended")))
        self._execute("locks.delete", {"lock_key": ticket_id})
        self._commit()
        return rows

    async def append(self) -> object:
        """Store two messages at once."""
        self._begin()
        self._write_row()
        seq = self._write_row()
        self._commit()
        return seq

    async def load(self) -> object:
        """Load the newest rows and decode their bodies."""
        return [json.loads(row[_BODY]) for row in self._load(None)]

    def _write_row(self) -> int:
        values = {"key": self._conversation_key, "count": 1}
        seq: int = self._execute("conversations.allocate", values).fetchone()[0]
        row_id = (self._conversation_key << _SEQ_BITS) + seq
        self._execute("rows.insert", {**self._row, "id": row_id, "message_id": f"floor-{seq}"})
        self._execute("sessions.update", self._session)
        return seq

    def _load(self, below: int | None) -> list[Any]:
        first = self._conversation_key << _SEQ_BITS
        last = first + (1 << _SEQ_BITS) if below is None else first + below
        values = {
            "session_key": self._row["session_key"],
            "least_shown": 1,
            "above": first,
            "below": last,
            "limit": WINDOW,
            "now": 0,
        }
        return self._execute("rows.session_descending", values).fetchall()

    def _begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        self._connection.execute("COMMIT")

    def _execute(self, name: str, values: Mapping[str, Any]) -> sqlite3.Cursor:
        return self._connection.execute(self._sql[name], values)

    def _fetch(self, text: str, values: Mapping[str, Any]) -> list[Any]:
        return self._connection.execute(text, values).fetchall()

    def _fetch_named(self, text: str, values: Mapping[str, Any]) -> dict[str, Any]:
        cursor = self._connection.execute(text, values)
        names = [column[0] for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))


def _entry(ticket_id: str, conversation: str) -> EntryRecord:
    return EntryRecord(
        ticket_id=ticket_id,
        lock_key=ticket_id,
        conversation=conversation,
        lane=conversation,
        claim_id=ticket_id,
        claim_key=ticket_id,
        payload="{}",
        starts_session=False,
        coalesces=True,
        state="running",
        owner="floor",
        attended_until=_LATER,
        expires_at=None,
        claim_until=_LATER,
        keep_until=_LATER,
        run_ticket_id=ticket_id,
    )
