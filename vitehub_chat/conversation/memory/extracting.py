"""Extracting: the driver's model names what is worth remembering in messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from vitehub_chat.formatting.memory_entries import EXTRACT, extract_prompt, read_entries
from vitehub_chat.model.context_policy import Ask
from vitehub_chat.model.memory_policy import EntrySink, MemoryEntry
from vitehub_chat.model.messages import Message


@attrs.frozen(kw_only=True)
class Extractor:
    """Asks a model and gives what it names to a sink."""

    ask: Ask
    sink: EntrySink

    async def extract(
        self,
        messages: Sequence[Message],
        *,
        like: MemoryEntry,
        deadline: datetime,
    ) -> int:
        """Add what is worth remembering in messages and return how many entries are new.

        Args:
            messages: What the model is shown.
            like: Has the facts that all entries share.
            deadline: When nobody waits for the model any more.

        Raises:
            Exception: Model or sink failed; what was added before stays, and is not added again.
        """
        answer = await self.ask(EXTRACT, extract_prompt(messages), deadline=deadline)
        added = 0
        for kind, text, digest in read_entries(answer):
            entry = attrs.evolve(like, kind=kind, text=text, digest=digest)
            added += await self.sink.add(entry)
        return added
