"""Replacing: what a turn would see that takes the place of stored messages, without writing."""

from __future__ import annotations

import attrs

from vitehub_chat.errors import NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.model.rows import Row
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import (
    PageRequest,
    SessionRef,
    SessionRequest,
    WindowRequest,
    WindowRows,
)


async def read_before(
    state: AgentState, replaces: str, asked: SessionRequest, wanted: WindowRequest | None
) -> tuple[SessionRef, WindowRows]:
    """Return the session of a stored message, and the rows of the window before it.

    Raises:
        NotFoundError: There is no such message where the session may be.
    """
    resolved = await state.sessions.resolve(asked)
    home, row = await find_row(state, replaces, asked, resolved)
    session = await state.sessions.resolve(session_of_row(asked, home, row))
    if wanted is None:
        return session, WindowRows()
    edge = (await state.transcripts.page(home, request=PageRequest(limit=1))).live_edge_seq
    most = wanted.limit + max(edge - row.seq, 0) + 1
    window = await state.transcripts.window(
        home, session=session, window=attrs.evolve(wanted, limit=most)
    )
    before = [each for each in window.shown if each.seq < row.seq]
    hidden = tuple(each for each in window.not_shown if each.seq < row.seq)
    shown = tuple(before[max(len(before) - wanted.limit, 0) :])
    return session, attrs.evolve(window, shown=shown, not_shown=hidden)


def session_of_row(asked: SessionRequest, home: ConversationKey, row: Row) -> SessionRequest:
    """Return what asks for the session of a stored row, whatever the times say."""
    return attrs.evolve(
        asked,
        conversation=home,
        policy=None if row.session_id is None else SessionPolicy(),
        base=row.session_id,
        starts_new=False,
    )


async def find_row(
    state: AgentState, message_id: str, asked: SessionRequest, resolved: SessionRef
) -> tuple[ConversationKey, Row]:
    """Return a stored message and the conversation that has it.

    Raises:
        NotFoundError: There is no such message where the session may be.
    """
    bases = {None, asked.base if asked.policy is not None else None, resolved.session_id}
    for home in dict.fromkeys([asked.conversation, ConversationKey.decode(resolved.conversation)]):
        for row in await state.transcripts.get(home, message_ids=[message_id]):
            if asked.policy is None or asked.base is None or row.session_id in bases:
                return home, row
    raise NotFoundError("no message of that id in this conversation")
