"""Sinks: where notes go, as files or in the Agent State."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Final, TypeVar, cast

import attrs

from vitehub_chat import plugins
from vitehub_chat.conversation.memory.folder import NoteFolder
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.memory_policy import (
    EntrySink,
    MemoryEntry,
    MemoryPolicy,
    MemorySink,
    RemovingSink,
)
from vitehub_chat.state.contract_documents import KeyValue
from vitehub_chat.state.hosts import STATE_URL_VARIABLE, production_host

T = TypeVar("T")

PATH: Final = "memory.sink"
NOTE: Final = "memory.note:"
"""In the state, before the id of a section: `{"date", "section"}`."""
ENTRY: Final = "memory.entry:"
"""In the state, before the digest of an entry: its facts."""
ENTRIES_OF: Final = "memory.entries:"
"""In the state, before the id of a section: the digests of the entries that came from it."""


@attrs.frozen(kw_only=True)
class MemorySinkSetting:
    """What the factory of a sink is given; it is called anew for every conversation.

    Attributes:
        conversation: Whose messages come.
        values: The values of the Agent State. What is kept under the conversation as its scope is
            erased with it.
    """

    conversation: ConversationKey
    values: KeyValue


MakeSink = Callable[[MemorySinkSetting], MemorySink]
"""Gives a conversation its sink."""


def find_sink(policy: MemoryPolicy) -> MakeSink:
    """Return what gives a conversation its sink; may import and read files.

    Raises:
        ConfigError: No sink has the name, or notes are files and this is the production of a
            serverless platform.
    """
    if policy.root is not None:
        files = FileSink(NoteFolder(_folder_that_lasts(policy.root)), policy.note_timeout)
        return lambda _setting: files
    sink = policy.sink
    if not isinstance(sink, str):
        return lambda _setting: cast(MemorySink, sink)
    create = plugins.memory_sinks.get(sink, path=PATH)

    def make(setting: MemorySinkSetting) -> MemorySink:
        made = create(setting)
        if not callable(getattr(made, "append", None)):
            raise ConfigError("built nothing with `append`", path=PATH, hint="see MemorySink")
        return cast(MemorySink, made)

    return make


def _folder_that_lasts(root: Path) -> Path:
    host = production_host()
    if host is None:
        return root
    raise ConfigError(
        f"a local folder does not last on {host}",
        path="memory.root",
        hint=f"give memory.sink='state', with {STATE_URL_VARIABLE} set to a database server",
    )


def removing(sink: MemorySink) -> RemovingSink | None:
    """Return a sink as one that removes sections, or None if it cannot."""
    return cast(RemovingSink, sink) if "remove" in _features(sink) else None


def taking_entries(sink: MemorySink) -> EntrySink | None:
    """Return a sink as one that takes entries, or None if it does not."""
    return cast(EntrySink, sink) if "entries" in _features(sink) else None


def _features(sink: object) -> frozenset[str]:
    return frozenset(getattr(sink, "features", ()))


@attrs.frozen
class FileSink:
    """Keeps notes as files of a folder; nothing of it runs on the event loop.

    Attributes:
        folder: The folder.
        patience: How long it waits for others who write there.
    """

    folder: NoteFolder
    patience: timedelta
    features: frozenset[str] = frozenset({"remove", "entries"})

    async def append(self, section: str, /, *, date: date, flush_id: str) -> None:
        """Carry out `MemorySink.append`."""
        await self._call(self.folder.append, section, date, flush_id)

    async def remove(self, flush_id: str, /, *, date: date) -> bool:
        """Carry out `RemovingSink.remove`."""
        return await self._call(self.folder.remove, flush_id, date)

    async def add(self, entry: MemoryEntry, /) -> bool:
        """Carry out `EntrySink.add`."""
        return await self._call(self.folder.add, entry)

    async def _call(self, work: Callable[..., T], *args: object) -> T:
        wait_s = self.patience.total_seconds()
        return await asyncio.to_thread(functools.partial(work, *args, wait_s=wait_s))


@attrs.frozen
class StateSink:
    """Keeps notes in the values of the Agent State, under their conversation.

    They are erased with it.
    """

    setting: MemorySinkSetting
    features: frozenset[str] = frozenset({"remove", "entries"})

    async def append(self, section: str, /, *, date: date, flush_id: str) -> None:
        """Carry out `MemorySink.append`."""
        await self.setting.values.set_if_absent(
            NOTE + flush_id,
            value={"date": date.isoformat(), "section": section},
            scope=self.setting.conversation,
        )

    async def remove(self, flush_id: str, /, *, date: date) -> bool:  # noqa: ARG002 - ids suffice
        """Carry out `RemovingSink.remove`."""
        values, scope = self.setting.values, self.setting.conversation
        for digest in await values.get_list(ENTRIES_OF + flush_id, scope=scope):
            await values.delete(f"{ENTRY}{digest}", scope=scope)
        await values.delete(ENTRIES_OF + flush_id, scope=scope)
        return await values.delete(NOTE + flush_id, scope=scope)

    async def add(self, entry: MemoryEntry, /) -> bool:
        """Carry out `EntrySink.add`."""
        values, scope = self.setting.values, self.setting.conversation
        if await values.get(ENTRY + entry.digest, scope=scope) is not None:
            return False
        # First what finds it for a removal, then itself.
        await values.append_to_list(ENTRIES_OF + entry.source, items=[entry.digest], scope=scope)
        facts = {
            "kind": entry.kind,
            "text": entry.text,
            "created": entry.created_at.isoformat(),
            "session": entry.session_id,
            "seq": [entry.from_seq, entry.to_seq],
            "source": entry.source,
        }
        return await values.set_if_absent(ENTRY + entry.digest, value=facts, scope=scope)


def create_state(setting: MemorySinkSetting) -> StateSink:
    """Build the sink that keeps notes in the Agent State."""
    return StateSink(setting)
