"""Dry reading: what a turn would be about, and the stored rows it would read, without writing."""

from __future__ import annotations

from datetime import datetime

from vitehub_chat.conversation.continuation import (
    find_continuation,
    read_before_answer,
    with_current,
)
from vitehub_chat.conversation.replacing import read_before
from vitehub_chat.conversation.selecting import Draft, draft_turn, window_request
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import SessionRef, SessionRequest, WindowRows


async def read_dry(
    state: AgentState, draft: Draft, asked: SessionRequest, now: datetime
) -> tuple[Draft, SessionRef | None, WindowRows]:
    """Return what a turn would be about, the session it would have, and the rows it would read.

    Raises:
        NotFoundError: There is no message to replace.
        InputError: There is no answer to go on with (`unknown_tool_call`).
        StateError: The state failed.
    """
    wanted, replaces = window_request(draft, now), draft.request.replaces
    if replaces is not None:
        return draft, *await read_before(state, replaces, asked, wanted)
    continuation = await find_continuation(state, draft.request, asked)
    if continuation is not None:
        merged = draft_turn(with_current(draft.request, continuation.message), draft.policy)
        return merged, *await read_before_answer(state, continuation, wanted)
    session = await state.sessions.resolve(asked)
    if wanted is None:
        return draft, session, WindowRows()
    window = await state.transcripts.window(asked.conversation, session=session, window=wanted)
    return draft, session, window
