"""Summaries: what is known of the summaries of a conversation, of both kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Literal

import attrs

from vitehub_chat.conversation.planning import newest_budget
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import SessionDetails, SessionInfo, Summary
from vitehub_chat.state.contract import AgentState

SummaryKind = Literal["manual", "rolling"]

SUMMARY_KINDS: Final[tuple[SummaryKind, ...]] = ("manual", "rolling")
_PAGE: Final = 100


@attrs.frozen
class SessionSummary:
    """A summary, and the session that it is of; None for the unnamed one or the conversation."""

    session_id: str | None
    kind: SummaryKind
    summary: Summary


async def find_summary(
    state: AgentState, key: ConversationKey, session_id: str | None, kind: SummaryKind
) -> Summary | None:
    """Return a summary; without a session the conversation's, or that of the session used last."""
    if kind == "manual":
        return await state.summaries.get_manual(key, session_id=session_id)
    if session_id is None:
        used_last = await find_session_used_last(state, key)
        session_id = None if used_last is None else used_last.session_id
    return await read_rolled(state, key, session_id)


async def find_session_used_last(state: AgentState, key: ConversationKey) -> SessionInfo | None:
    """Return the session of a conversation with the newest message, or None without one."""
    page = await state.sessions.list(key.tenant, agent=key.agent, conversation=key, limit=1)
    return page.items[0] if page.items else None


async def read_rolled(
    state: AgentState, key: ConversationKey, session_id: str | None
) -> Summary | None:
    """Return the rolled summary of one session, None being the unnamed one; None without one."""
    rolling = await state.summaries.get_rolling(key, session_id=session_id)
    if rolling is None or rolling.created_at is None:
        return None
    return Summary(
        text=rolling.summary,
        created_at=rolling.created_at,
        through_seq=rolling.through_seq,
        version=rolling.version,
        model=rolling.model,
    )


async def list_summaries(
    state: AgentState, key: ConversationKey, session_id: str | None
) -> AsyncIterator[SessionSummary]:
    """Yield the summaries of one session, or of a conversation and all its sessions.

    The conversation's comes first, then those of the session that was used last.
    """
    manual = await state.summaries.get_manual(key, session_id=session_id)
    if manual is not None:
        yield SessionSummary(session_id, "manual", manual)
    ids: list[str | None] = [session_id]
    if session_id is None:
        ids = [each async for each in _session_ids(state, key)]
    for each in ids:
        if each not in {None, session_id}:
            manual = await state.summaries.get_manual(key, session_id=each)
            if manual is not None:
                yield SessionSummary(each, "manual", manual)
        rolled = await read_rolled(state, key, each)
        if rolled is not None:
            yield SessionSummary(each, "rolling", rolled)


async def describe_session(
    state: AgentState, info: SessionInfo, *, session_id: str | None
) -> SessionDetails:
    """Return a session with its summaries and its budget.

    Without `session_id` the manual summary and the budget are those of the whole conversation.
    """
    key = info.conversation
    return SessionDetails(
        **{each.name: getattr(info, each.name) for each in attrs.fields(SessionInfo)},
        rolling=await read_rolled(state, key, info.session_id),
        manual=await find_summary(state, key, session_id, "manual"),
        context_budget=await newest_budget(state, key, session_id),
    )


async def _session_ids(state: AgentState, key: ConversationKey) -> AsyncIterator[str | None]:
    """Yield the ids of the sessions of a conversation, each once, the one used last first."""
    seen: set[str | None] = set()
    cursor = None
    while True:
        page = await state.sessions.list(
            key.tenant, agent=key.agent, conversation=key, limit=_PAGE, cursor=cursor
        )
        for info in page.items:
            if info.session_id not in seen:
                seen.add(info.session_id)
                yield info.session_id
        cursor = page.next_cursor
        if cursor is None:
            return
