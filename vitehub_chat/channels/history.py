"""History: the earlier messages of a thread, for the turn that answers its newest one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import attrs

from vitehub_chat.channels.contract import Channel
from vitehub_chat.channels.looks import Looks
from vitehub_chat.channels.messages import said_by_author
from vitehub_chat.channels.threads import ThreadCache, before
from vitehub_chat.channels.values import Target
from vitehub_chat.conversation import events
from vitehub_chat.conversation.control import guarded
from vitehub_chat.conversation.identity import find_user_key
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import is_blank
from vitehub_chat.model.policies import ChatPolicy, HistoryWindow
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.ui_messages import read_messages
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import NewRow, PageRequest, SessionRequest

FETCHED = "channels.fetched"
"""The key under which a conversation says that its platform was asked for earlier messages."""

BACKFILL_S = 30.0
"""How long a platform may take to give the earlier messages of a thread."""


@attrs.frozen(kw_only=True)
class Asked:
    """A turn that needs its history.

    Attributes:
        key: The conversation.
        target: The thread on the platform.
        request: The request, its message the current one.
        group: The messages that are answered together with it, in order, without it.
    """

    key: ConversationKey
    channel: Channel
    target: Target
    request: TurnRequest
    group: Sequence[Message]

    @property
    def ids(self) -> Sequence[str | None]:
        """The ids of the messages that are answered."""
        return [message.id for message in (*self.group, self.request.current)]


class Histories:
    """The earlier messages of threads.

    With a state these are its rows; what the platform had before the first of them is stored once.
    Without one they are in a cache of this process.
    """

    def __init__(self, policy: ChatPolicy, state: AgentState | None, clock: Clock) -> None:
        self.cache = None if state is not None else ThreadCache(policy.thread_history, clock)
        self._policy = policy
        self._state = state
        self._looks = Looks()

    async def supply(self, asked: Asked) -> TurnRequest:
        """Return the request with the earlier messages of its thread.

        Without a window nothing is fetched.
        """
        window = self._policy.window
        if window is not None:
            await self._looks.once(asked.key, lambda: self._backfill(asked))
        if self.cache is None:
            return self._from_rows(asked.request, window)
        return self._from_cache(self.cache, asked)

    def _from_rows(self, request: TurnRequest, window: HistoryWindow | None) -> TurnRequest:
        if window is None:
            return request
        return attrs.evolve(request, window=attrs.evolve(window, source="transcript"))

    def _from_cache(self, cache: ThreadCache, asked: Asked) -> TurnRequest:
        current = asked.request.current
        earlier = before(cache.messages(asked.key), [current.id])
        return attrs.evolve(asked.request, messages=(*earlier, current))

    async def _backfill(self, asked: Asked) -> None:
        """Ask the platform for what came before a thread was first seen."""
        if "backfill" not in asked.channel.features:
            return
        if self._state is not None and await _is_known(self._state, asked.key):
            return
        fetched = await self._fetch(asked)
        # What the platform has behind the current message is not said yet: it arrives by itself.
        earlier = before(fetched, asked.ids)
        if self.cache is not None:
            self.cache.merge_earlier(asked.key, fetched)
        elif self._state is not None:
            for session, rows in await self._chunks(asked, earlier):
                await self._state.transcripts.append(session, rows=rows)
            await self._state.values.set(FETCHED, value=True, scope=asked.key)

    async def _fetch(self, asked: Asked) -> Sequence[Message]:
        limit = self._policy.thread_history.max_messages
        try:
            async with asyncio.timeout(BACKFILL_S):
                with guarded():
                    page = await asked.channel.backfill(asked.target, limit=limit)
            found = [each for each in read_messages(page) if each.id is not None]
        except Exception as error:  # noqa: BLE001 - told in the log; the turn goes on without
            events.backfill_failed(error, key=asked.key, message_id=asked.request.current.id)
            return ()
        return [_with_known_role(each) for each in found if not is_blank(each)][-limit:]

    async def _chunks(
        self, asked: Asked, messages: Sequence[Message]
    ) -> list[tuple[SessionRequest, Sequence[NewRow]]]:
        """Return what to store, cut where silence ends a session."""
        sessions = self._policy.sessions
        owner = await find_user_key(self._policy, asked.request)
        rows = [await self._row(asked, message) for message in messages]
        idle = None if sessions is None else sessions.idle_timeout
        return [
            (
                SessionRequest(
                    conversation=asked.key,
                    policy=sessions,
                    begins_with=chunk[0].message.id,
                    begins_at=next(_times(chunk), None),
                    user_key=owner,
                ),
                chunk,
            )
            for chunk in _split(rows, idle)
        ]

    async def _row(self, asked: Asked, message: Message) -> NewRow:
        request = said_by_author(asked.request, message, self._policy)
        author = None if message.role == "assistant" else await find_user_key(self._policy, request)
        return NewRow(message=message, author=author, thread_id=asked.key.thread)


async def _is_known(state: AgentState, key: ConversationKey) -> bool:
    """Tell whether a conversation was seen before, also if its rows are gone since."""
    page = await state.transcripts.page(key, request=PageRequest(limit=1))
    if page.items or page.unreadable or page.generation:
        return True
    return bool(await state.values.get(FETCHED, scope=key))


def _with_known_role(message: Message) -> Message:
    return message if message.role == "assistant" else attrs.evolve(message, role="user")


def _split(rows: Sequence[NewRow], idle: timedelta | None) -> Iterator[Sequence[NewRow]]:
    """Yield the rows in pieces, a new one after every silence that ends a session."""
    chunk: list[NewRow] = []
    last: datetime | None = None
    for row in rows:
        time = row.message.created_at
        silence = timedelta() if time is None or last is None else time - last
        if chunk and idle is not None and silence > idle:
            yield chunk
            chunk = []
        chunk.append(row)
        last = time or last
    if chunk:
        yield chunk


def _times(rows: Sequence[NewRow]) -> Iterator[datetime]:
    return (row.message.created_at for row in rows if row.message.created_at is not None)
