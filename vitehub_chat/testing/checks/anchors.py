"""Anchors: windows that begin where the summary of a session ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rolling import Rolling
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.row_requests import TruncateRequest
from vitehub_chat.state.values import SessionRef, SessionRequest, WindowRequest, WindowRows
from vitehub_chat.testing.checks.expecting import equal, present
from vitehub_chat.testing.checks.material import MANUAL, append, new_key, numbered, row
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("anchors")

_MANY: Final = 150
"""More than any store looks up before it knows where the anchor is."""


@group
async def check_a_window_begins_at_the_anchor(open_state: OpenState, clock: FakeClock) -> None:
    """Leave out what the summary covers, wherever the anchor is, and tell the rolling state."""
    key = new_key()
    async with open_state(clock) as state:
        await state.transcripts.append(SessionRequest(conversation=key), rows=numbered(_MANY))
        for anchor in (2, 10, _MANY - 3, _MANY, _MANY + 1):
            rolled = await _roll(state, key, anchor)
            window = await _window(state, key)
            expected = [f"m{n}" for n in range(anchor, _MANY + 1)]
            equal(_ids(window), expected, f"the rows behind the anchor {anchor}")
            equal(window.rolling, rolled, "the rolling state")
        await append(state, key, "late")
        equal(_ids(await _window(state, key)), ["late"], "the rows")
        everything = await _window(state, key, from_anchor=False)
        equal(len(everything.shown), _MANY + 1, "the rows of a window without an anchor")
        equal(everything.rolling, None, "what such a window tells of the rolling state")


@group
async def check_the_anchor_takes_nobody_s_place(open_state: OpenState, clock: FakeClock) -> None:
    """Give the newest rows behind the anchor, as many as were asked for."""
    key = new_key()
    async with open_state(clock) as state:
        await state.transcripts.append(SessionRequest(conversation=key), rows=numbered(20))
        await _roll(state, key, 5)
        equal(_ids(await _window(state, key, limit=3)), ["m18", "m19", "m20"], "the window")
        equal(len(_ids(await _window(state, key, limit=16))), 16, "the size of the window")
        equal(len(_ids(await _window(state, key, limit=100))), 16, "the size of the window")


@group
async def check_hidden_rows_below_the_anchor_are_not_read(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Leave out rows that no model may see as well, if they come before the anchor."""
    key = new_key()
    async with open_state(clock) as state:
        hidden = [row(f"h{n}", is_shown=False) for n in range(2)]
        mixed = [hidden[0], *numbered(3), hidden[1], *numbered(2, after=3)]
        await state.transcripts.append(SessionRequest(conversation=key), rows=mixed)
        await _roll(state, key, 4)
        window = await _window(state, key)
        equal(_ids(window), ["m3", "m4", "m5"], "the rows that are shown")
        equal([r.message.id for r in window.not_shown], ["h1"], "the rows that are not")


@group
async def check_system_messages_before_the_anchor_are_read(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Give the system messages that the state names, in their order, while they are stored."""
    key = new_key()
    async with open_state(clock) as state:
        said = [row("s1", role="system"), *numbered(2), row("s2", role="system")]
        await state.transcripts.append(SessionRequest(conversation=key), rows=said)
        await append(state, key, "m3", "m4", "m5")
        await _roll(state, key, 6, system_seqs=[1, 4])
        equal(_ids(await _window(state, key)), ["s1", "s2", "m4", "m5"], "the rows")
        equal(_ids(await _window(state, key, limit=1)), ["s1", "s2", "m5"], "the rows")
        without = await _window(state, key, besides=frozenset({"s1"}))
        equal(_ids(without), ["s2", "m4", "m5"], "the rows but one")
        await state.transcripts.truncate(key, request=TruncateRequest(message_id="s2"))
        equal(_ids(await _window(state, key)), ["s1", "m1", "m2"], "the rows after a cut")


@group
async def check_each_session_has_its_own_anchor(open_state: OpenState, clock: FakeClock) -> None:
    """Read each session from its own anchor, and all rows of the conversation from none."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "a1", "a2", "a3", base="a", policy=MANUAL)
        await append(state, key, "b1", "b2", "b3", base="b", policy=MANUAL)
        await _roll(state, key, 3, session_id="a")
        await _roll(state, key, 5, session_id="b")
        for name, expected in (("a", ["a3"]), ("b", ["b2", "b3"])):
            request = SessionRequest(conversation=key, base=name, policy=MANUAL)
            session = await state.sessions.resolve(request)
            equal(_ids(await _window(state, key, session=session)), expected, "the rows")


@group
async def check_a_session_that_is_gone_has_no_anchor(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Answer without rows and without a state where the session was deleted."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2")
        session = await state.sessions.resolve(SessionRequest(conversation=key))
        await _roll(state, key, 2)
        await state.sessions.clear(key, session_id=None, delete_session=True)
        window = await _window(state, key, session=session)
        equal((_ids(window), window.rolling), ([], None), "what is left")


async def _roll(
    state: AgentState,
    key: ConversationKey,
    anchor: int,
    *,
    session_id: str | None = None,
    system_seqs: Sequence[int] = (),
) -> Rolling:
    since = present(await state.summaries.get_rolling(key, session_id=session_id), "the state")
    written = await state.summaries.commit_roll(
        key,
        session_id=session_id,
        since=since,
        summary=f"up to {anchor}",
        anchor=anchor,
        system_seqs=system_seqs,
    )
    return present(written.rolling, "the state that was written")


async def _window(
    state: AgentState,
    key: ConversationKey,
    *,
    session: SessionRef | None = None,
    limit: int = 1000,
    besides: frozenset[str] = frozenset(),
    from_anchor: bool = True,
) -> WindowRows:
    wanted = WindowRequest(limit=limit, besides=besides, from_anchor=from_anchor)
    if session is None:
        whole = attrs.evolve(wanted, whole_conversation=True)
        return await state.transcripts.window(key, session=None, window=whole)
    return await state.transcripts.window(key, session=session, window=wanted)


def _ids(window: WindowRows) -> list[str | None]:
    return [each.message.id for each in window.shown]
