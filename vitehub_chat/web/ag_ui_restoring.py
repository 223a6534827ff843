"""AG-UI restoring: a run that starts nothing and tells what is stored."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from vitehub_chat.agent.agent import Agent
from vitehub_chat.errors import NotFoundError
from vitehub_chat.model.messages import Message
from vitehub_chat.streams.ag_ui import AgUiEncoder
from vitehub_chat.streams.ag_ui_snapshot import encode_snapshot
from vitehub_chat.streams.chunks import Chunk
from vitehub_chat.streams.encoders import Encoder
from vitehub_chat.web.access import Access, Place
from vitehub_chat.web.principals import Principal
from vitehub_chat.web.wire import AgUiBody

NEWEST: Final = 100
"""So many of the newest messages are told."""


class Restored:
    """A run that is over before it is followed.

    Attributes:
        encoder: What makes frames of its chunks.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.encoder: Encoder = AgUiEncoder()
        self._chunks = chunks

    async def follow(self, _idle_s: float | None = None, /) -> AsyncGenerator[Chunk | None]:
        """Yield the chunks."""
        for chunk in self._chunks:
            yield chunk


class Restorer:
    """Tells clients that have no messages yet what is stored.

    Args:
        agent: The agent.
        access: Who may see what.
        is_allowed: Whether clients may read what is stored.
    """

    def __init__(self, agent: Agent, access: Access, *, is_allowed: bool) -> None:
        self._agent = agent
        self._access = access
        self._is_allowed = is_allowed

    def is_asked(self, body: AgUiBody) -> bool:
        """Tell whether a client asks for what is stored: it sends no messages and no decisions."""
        return self._is_allowed and not body.messages and not body.resume

    async def restore(self, body: AgUiBody, place: Place, principal: Principal) -> Restored:
        """Return the newest messages of a place; none if nothing is stored there.

        Raises:
            StateError: The state failed.
        """
        messages = await self._read(place, principal)
        chunks = encode_snapshot(messages, thread_id=body.thread_id, run_id=body.run_id)
        return Restored(chunks)

    async def _read(self, place: Place, principal: Principal) -> list[Message]:
        if await self._agent.runtime().open_state() is None:
            return []
        try:
            found = await self._access.open(principal, place)
        except NotFoundError:
            return []
        page = await found.conversation.history(limit=NEWEST)
        return [row.message for row in page.items]
