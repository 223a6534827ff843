"""The Agent State contract for search over stored messages."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import attrs

from vitehub_chat.model.hits import SearchPage
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.context import NO_CONTEXT, StateContext
from vitehub_chat.state.row_requests import AgeLimit


@attrs.frozen(kw_only=True)
class SearchRequest:
    """Which messages are searched for; all conditions together.

    Attributes:
        query: Plain words, all of which must occur, in any case; a blank one finds nothing.
        limit: How many at most, at least 1.
        after: Only those said at this time or later, or None.
        before: Only those said before this time, or None.
        role: Only those of this role, or None.
        conversation: Only those of this conversation, or None.
        session_id: Only those of sessions of this id, or None: of all.
        not_older_than: Leaves out what is too old, or None.
    """

    query: str
    limit: int = 10
    after: datetime | None = None
    before: datetime | None = None
    role: str | None = None
    conversation: ConversationKey | None = None
    session_id: str | None = None
    not_older_than: AgeLimit | None = None


class SearchIndex(Protocol):
    """Search over the text of stored messages; what is written is found at once.

    It is there if the feature `search` is.
    """

    async def search(
        self,
        tenant: str | None,
        /,
        *,
        agent: str | None,
        user_key: str | None = None,
        request: SearchRequest,
        ctx: StateContext = NO_CONTEXT,
    ) -> SearchPage:
        """Return messages of a tenant's sessions in whose text all words of a query occur.

        A word occurs wherever its characters do, in any script and in the middle of words, too.
        What is hidden, superseded or expired is not found. Of the sessions with the newest
        activity first, the newest messages first.

        Args:
            tenant: Exactly this tenant.
            agent: Only sessions of this agent, None is any.
            user_key: Only sessions of this owner, None is any: the operator's view.
            request: What is searched for.
            ctx: The context of the call.

        Raises:
            InputError: A time of the request has no zone.
        """
