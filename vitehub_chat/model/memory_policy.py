"""Memory policy: where messages are archived before they are condensed, and how."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Literal, Protocol

import attrs

OnFlushError = Literal["continue", "block"]
EntryKind = Literal["fact", "decision", "preference", "task"]


class MemorySink(Protocol):
    """Where sections of notes go.

    An object may also have `features`, a set of the names of what else it can do: `remove` for
    `RemovingSink`, `entries` for `EntrySink`.
    """

    async def append(self, section: str, /, *, date: date, flush_id: str) -> None:
        """Append a section to the notes of a day; with an id that is there already, do nothing.

        Args:
            section: Markdown, with the id in a comment.
            date: The day, in the time zone of the notes.
            flush_id: 32 hexadecimal digits; the same section always has the same one.

        Raises:
            Exception: It was not appended; it is tried again with the same id.
        """


class RemovingSink(Protocol):
    """A sink that can remove sections again (`remove`)."""

    async def remove(self, flush_id: str, /, *, date: date) -> bool:
        """Remove a section and the entries that came from it; tell whether there was one."""


class EntrySink(Protocol):
    """A sink that takes single entries, too (`entries`)."""

    async def add(self, entry: MemoryEntry, /) -> bool:
        """Add an entry unless one of the same digest is there; tell whether it was added.

        None is ever overwritten.
        """


@attrs.frozen(kw_only=True)
class MemoryEntry:
    """Something worth remembering that a model found in messages.

    Attributes:
        digest: 64 hexadecimal digits of its normalised text: equal ones are one entry.
        kind: What it is.
        text: What it says.
        created_at: When it was found, in the time zone of the notes.
        session_id: The session of the messages, or None for the unnamed one.
        from_seq: The number of the first message it may come from.
        to_seq: The number of the last one.
        source: The id of the flush.
    """

    digest: str
    kind: EntryKind
    text: str
    created_at: datetime
    session_id: str | None
    from_seq: int
    to_seq: int
    source: str


@attrs.frozen(kw_only=True)
class MemoryNote:
    """A section of the notes: its id and the day under which it is filed."""

    flush_id: str
    date: date


@attrs.frozen(kw_only=True)
class MemoryPolicy:
    """Where messages are archived before they are condensed (`memory`).

    Attributes:
        root: The folder of the notes, or None with a sink.
        sink: A name, an object, or None with a folder.
        daily_note: Whether what is condensed is appended to the note of the day.
        extract: Whether the driver's model looks for single entries in it.
        append_every_turn: Whether every finished turn is appended.
        on_error: `block`: nothing is condensed in a turn in which archiving failed.
        timezone: The zone by whose date notes are filed.
        note_timeout: How long one note may take.
        extract_timeout: How long one extraction may take.
    """

    root: Path | None = None
    sink: str | MemorySink | None = None
    daily_note: bool = True
    extract: bool = True
    append_every_turn: bool = False
    on_error: OnFlushError = "continue"
    timezone: tzinfo = UTC
    note_timeout: timedelta = timedelta(milliseconds=5000)
    extract_timeout: timedelta = timedelta(milliseconds=20_000)
