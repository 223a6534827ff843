"""The Agent State contract for stored messages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import HistoryPage, MessageRange, Row, Truncated, TurnPage
from vitehub_chat.state.context import NO_CONTEXT, StateContext
from vitehub_chat.state.row_requests import (
    AgeLimit,
    Pruned,
    PruneRequest,
    RangeRequest,
    TruncateRequest,
    TurnsRequest,
)
from vitehub_chat.state.values import (
    NewRow,
    PageRequest,
    RowBatch,
    SessionRef,
    SessionRequest,
    WindowRequest,
    WindowRows,
)


class TranscriptStore(Protocol):
    """Stored messages, in the order of their numbers."""

    async def append(
        self,
        session: SessionRequest,
        /,
        *,
        rows: Sequence[NewRow],
        ctx: StateContext = NO_CONTEXT,
    ) -> Sequence[Row]:
        """Store messages at the live edge and return them with their numbers.

        A message whose id is stored already replaces that row and keeps its number and times. An
        empty sequence does nothing.
        """

    async def get(
        self,
        key: ConversationKey,
        /,
        *,
        message_ids: Sequence[str],
        not_older_than: AgeLimit | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Sequence[Row]:
        """Return the rows with these message ids, by number; unknown ids are left out.

        Raises:
            StateError: One of them cannot be read (`corrupt`).
        """

    async def window(
        self,
        key: ConversationKey,
        /,
        *,
        session: SessionRef | None,
        window: WindowRequest,
        ctx: StateContext = NO_CONTEXT,
    ) -> WindowRows:
        """Return the newest shown rows, ascending; reads no more than the window needs."""

    async def page(
        self, key: ConversationKey, /, *, request: PageRequest, ctx: StateContext = NO_CONTEXT
    ) -> HistoryPage:
        """Return one page of visible rows.

        Raises:
            CursorError: The cursor is not one of this conversation.
            NotFoundError: The row that `around` names is unknown or too old.
        """

    def export(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None = None,
        not_older_than: AgeLimit | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> AsyncIterator[RowBatch]:
        """Yield every visible row, ascending, in batches of bounded size."""

    async def range(
        self, key: ConversationKey, /, *, request: RangeRequest, ctx: StateContext = NO_CONTEXT
    ) -> MessageRange:
        """Return visible rows around a message or of a range of numbers, ascending.

        Raises:
            NotFoundError: The row that `around` names is unknown or too old.
        """

    async def turns(
        self, key: ConversationKey, /, *, request: TurnsRequest, ctx: StateContext = NO_CONTEXT
    ) -> TurnPage:
        """Return one light row per user message, ascending from the first.

        Raises:
            CursorError: The cursor is not one of this index.
        """

    async def replace(
        self,
        key: ConversationKey,
        /,
        *,
        row: NewRow,
        session_id: str | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Row:
        """Change a stored message in its place; its number, times and author stay.

        Raises:
            NotFoundError: No message of that id is stored here.
            ChatBusyError: It is an answer that is being written (`turn_in_progress`).
        """

    async def delete(
        self,
        key: ConversationKey,
        /,
        *,
        message_id: str,
        session_id: str | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> int:
        """Delete the unit of one message and count its rows; the generation stays.

        A rolled summary that covers it goes back to what it was before. With the retention
        `forever` the rows are superseded instead.

        Raises:
            NotFoundError: No message of that id is stored here.
            ChatBusyError: Part of it is an answer that is being written (`turn_in_progress`).
        """

    async def truncate(
        self, key: ConversationKey, /, *, request: TruncateRequest, ctx: StateContext = NO_CONTEXT
    ) -> Truncated:
        """Cut a conversation off from a message on, in whole units, and raise the generation.

        The rows, their claims and what a rolled summary says of them go together. With the
        retention `forever` the rows are superseded instead: out of everything but pages that ask
        for them. With nothing to cut nothing changes.

        Raises:
            NotFoundError: No message of that id is stored here.
            ChatBusyError: A turn waits or runs (`turn_in_progress`); nothing was cut.
            StateConflictError: The generation is not the expected one; nothing was cut.
        """

    async def prune(
        self, key: ConversationKey, /, *, request: PruneRequest, ctx: StateContext = NO_CONTEXT
    ) -> Pruned:
        """Delete or hide the rows that a rule chooses of the visible ones, in one transaction.

        Counts follow; summaries, numbers, generation and claims stay.

        Raises:
            ConfigError: It would delete rows that the retention `forever` keeps.
        """
