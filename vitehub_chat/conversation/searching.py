"""Searching: hits in the conversations of one tenant, by an index or in one session without one."""

from __future__ import annotations

from datetime import datetime

import attrs

from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.model.clock import read_time
from vitehub_chat.model.folding import contains_all, fold_text, split_query
from vitehub_chat.model.hits import SearchHit, SearchPage
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import Row, SessionInfo
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.contract_search import SearchRequest
from vitehub_chat.state.stores.searching import check_ids, hit_of

MAX_HITS = 50
_SESSIONS_AT_ONCE = 100


@attrs.frozen(kw_only=True)
class SearchScope:
    """Whose conversations are searched, from trusted code."""

    tenant: str | None
    agent: str | None
    user_key: str | None


def check_request(request: SearchRequest) -> SearchRequest:
    """Return a request as it is carried out, its times in UTC.

    Raises:
        InputError: A field of it has another type, is no time, or an id that cannot be one. A role
            is any text that a message may have as one.
    """
    if not isinstance(request.query, str):
        raise InputError(f"must be text, not {type(request.query).__name__}", path="query")
    if not isinstance(request.conversation, ConversationKey | None):
        raise InputError("must be a ConversationKey", path="conversation")
    check_ids(request)
    return attrs.evolve(
        request,
        after=_time(request.after, "after"),
        before=_time(request.before, "before"),
    )


async def search(state: AgentState, scope: SearchScope, request: SearchRequest) -> SearchPage:
    """Return what a search finds; without a `SearchIndex` one session is read.

    Raises:
        ConfigError: There is no `SearchIndex`, and the request is for more than one session.
    """
    # Not by the attribute: a state of somebody else need not have it.
    index = state.search if "search" in state.features else None
    if index is not None:
        return await index.search(
            scope.tenant, agent=scope.agent, user_key=scope.user_key, request=request
        )
    if request.session_id is None:
        raise ConfigError(
            "is off, or this state has no search",
            path="state.search",
            hint="set the option `search` of the state to True, or search one session",
        )
    session = await _find_session(state, scope, request)
    if session is None:
        return SearchPage()
    return await _scan(state, session, request)


async def _scan(state: AgentState, session: SessionInfo, request: SearchRequest) -> SearchPage:
    """Return the hits in one session, which is read whole."""
    words = split_query(request.query)
    key = session.conversation
    hits: list[SearchHit] = []
    unreadable: list[tuple[ConversationKey, int]] = []
    exported = state.transcripts.export(
        key, session_id=session.session_id, not_older_than=request.not_older_than
    )
    async for batch in exported:
        unreadable += [(key, seq) for seq in batch.unreadable]
        hits += [hit_of(session, row, words) for row in batch.rows if _is_hit(row, words, request)]
        del hits[: -request.limit]
    return SearchPage(items=tuple(reversed(hits)), unreadable=tuple(unreadable))


def _is_hit(row: Row, words: tuple[str, ...], request: SearchRequest) -> bool:
    if not words or request.role not in {None, row.message.role}:
        return False
    said_at = row.said_at
    if request.after is not None and said_at < request.after:
        return False
    if request.before is not None and said_at >= request.before:
        return False
    return contains_all(fold_text(row.message.text), words)


async def _find_session(
    state: AgentState, scope: SearchScope, request: SearchRequest
) -> SessionInfo | None:
    """Return the session of the wanted id that was used last, if it is in the scope."""
    cursor = None
    while True:
        page = await state.sessions.list(
            scope.tenant,
            agent=scope.agent,
            user_key=scope.user_key,
            conversation=request.conversation,
            limit=_SESSIONS_AT_ONCE,
            cursor=cursor,
        )
        for session in page.items:
            if session.session_id == request.session_id:
                return session
        cursor = page.next_cursor
        if cursor is None:
            return None


def _time(value: object, path: str) -> datetime | None:
    if value is None:
        return None
    time = read_time(value)
    if time is None:
        raise InputError("must be a time in ISO 8601", path=path)
    return time
