"""Windows: the newest rows that a call may see."""

from __future__ import annotations

from typing import Final

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import SessionRef, SessionRequest, WindowRequest, WindowRows
from vitehub_chat.testing.checks.expecting import equal
from vitehub_chat.testing.checks.lines import new_line, under
from vitehub_chat.testing.checks.material import MANUAL, append, ids_of, new_key, numbered, row
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("windows")


@group
async def check_a_window_is_the_newest_rows_ascending(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Return at most `limit` rows, the newest ones, in their order."""
    key = new_key()
    async with open_state(clock) as state:
        await state.transcripts.append(SessionRequest(conversation=key), rows=numbered(30))
        for limit, first in ((1, 30), (3, 28), (30, 1), (1000, 1)):
            window = await _window(state, key, limit)
            expected = [f"m{number}" for number in range(first, 31)]
            equal(ids_of(window.shown), expected, f"the window of {limit}")
        equal((await _window(state, key, 0)).shown, (), "the window of none")


@group
async def check_a_window_shows_what_was_just_stored(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Show a row as soon as it is stored, and as it was stored last."""
    key = new_key()
    async with open_state(clock) as state:
        for number in range(5):
            await append(state, key, f"m{number}")
            equal(ids_of((await _window(state, key, 1)).shown), [f"m{number}"], "the newest row")
        request = SessionRequest(conversation=key)
        await state.transcripts.append(request, rows=[row("m4", "changed")])
        window = await _window(state, key, 1)
        equal([each.message.text for each in window.shown], ["changed"], "the newest text")
        await state.sessions.clear(key)
        equal((await _window(state, key, 1)).shown, (), "the window of a cleared conversation")


@group.needs("one_store")
async def check_a_window_shows_what_others_stored(open_state: OpenState, clock: FakeClock) -> None:
    """Show what another object stored, changed and deleted in the meantime."""
    key = new_key()
    async with open_state(clock) as one, open_state(clock) as two:
        await append(one, key, "m1")
        equal(ids_of((await _window(one, key, 5)).shown), ["m1"], "the window")
        await append(two, key, "m2")
        equal(ids_of((await _window(one, key, 5)).shown), ["m1", "m2"], "the window with more")
        request = SessionRequest(conversation=key)
        await two.transcripts.append(request, rows=[row("m2", "changed")])
        window = await _window(one, key, 1)
        equal([each.message.text for each in window.shown], ["changed"], "the newest text")
        await two.sessions.clear(key)
        equal((await _window(one, key, 5)).shown, (), "the window of a cleared conversation")


@group
async def check_rows_that_the_call_brings_are_left_out(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Leave out the rows named in `besides`, and fill the window without them."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2", "m3", "m4")
        asked = WindowRequest(limit=2, besides=frozenset({"m4", "m2", "unknown"}))
        window = await state.transcripts.window(key, session=None, window=asked)
        equal(ids_of(window.shown), ["m1", "m3"], "the window")


@group
async def check_hidden_rows_are_kept_apart(open_state: OpenState, clock: FakeClock) -> None:
    """Give hidden rows apart from the shown ones, and let them take no place."""
    key = new_key()
    batch = [row(f"m{number}", is_shown=number % 2 == 0) for number in range(8)]
    async with open_state(clock) as state:
        await state.transcripts.append(SessionRequest(conversation=key), rows=batch)
        window = await _window(state, key, 2)
        equal(ids_of(window.shown), ["m4", "m6"], "the shown rows")
        equal(ids_of(window.not_shown), ["m5", "m7"], "the hidden rows between and behind them")


@group
async def check_a_window_is_of_one_session(open_state: OpenState, clock: FakeClock) -> None:
    """Show the rows of the session alone, or all of them when the conversation is asked for."""
    key = new_key()
    async with open_state(clock) as state:
        for number in range(6):
            base = None if number == 0 else f"s{number % 2}"
            policy = None if base is None else MANUAL
            await append(state, key, f"m{number}", base=base, policy=policy)
        odd = await _session(state, key, "s1")
        equal(ids_of((await _window(state, key, 9, odd)).shown), ["m1", "m3", "m5"], "a session")
        equal(ids_of((await _window(state, key, 2, odd)).shown), ["m3", "m5"], "its newest rows")
        equal(ids_of((await _window(state, key, 9)).shown), ["m0"], "the unnamed session")
        asked = WindowRequest(limit=4, whole_conversation=True)
        whole = await state.transcripts.window(key, session=odd, window=asked)
        equal(ids_of(whole.shown), ["m2", "m3", "m4", "m5"], "the conversation")


@group
async def check_a_session_that_does_not_exist_has_an_empty_window(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Return nothing for a session that no message has started."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1")
        to_be = await _session(state, key, "s1")
        equal((await _window(state, key, 5, to_be)).shown, (), "the window")


@group
async def check_an_answer_that_grows_is_not_said_yet(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Leave the answer of a running turn out of what a call may see."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.record(grant)
        answer = row("a1", "so f", role="assistant", status="pending")
        await state.turns.progress(grant.ticket_id, answer=answer, ctx=under(grant))
        window = await _window(state, line.key, 5)
        equal(ids_of(window.shown), ["a"], "the window")


@group
async def check_recording_reads_the_rows_before(open_state: OpenState, clock: FakeClock) -> None:
    """Read the window of a recorded message without that message itself."""
    async with open_state(clock) as state:
        line = new_line(state)
        await append(state, line.key, "m1", "m2", "m3")
        grant = await line.start("a")
        recorded = await line.record(grant, window=WindowRequest(limit=2))
        equal(ids_of(recorded.rows), ["a"], "the rows of the run")
        equal(ids_of(recorded.window.shown), ["m2", "m3"], "the window")


async def _window(
    state: AgentState, key: ConversationKey, limit: int, session: SessionRef | None = None
) -> WindowRows:
    asked = WindowRequest(limit=limit)
    return await state.transcripts.window(key, session=session, window=asked)


async def _session(state: AgentState, key: ConversationKey, base: str) -> SessionRef:
    asked = SessionRequest(conversation=key, policy=MANUAL, base=base)
    return await state.sessions.resolve(asked)


@group
async def check_an_answer_that_grows_takes_nobodys_place(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Give as many rows as were asked for beside the answer of a turn that runs."""
    async with open_state(clock) as state:
        line = new_line(state)
        await append(state, line.key, "m1", "m2", "m3")
        grant = await line.start("a")
        await line.record(grant)
        growing = row("re a", "so", role="assistant", status="pending")
        await state.turns.progress(grant.ticket_id, answer=growing, ctx=under(grant))
        window = WindowRequest(limit=3)
        found = await state.transcripts.window(line.key, session=None, window=window)
        equal(ids_of(found.shown), ["m2", "m3", "a"], "the rows")
        equal(ids_of(found.not_shown), ["re a"], "the row that grows")
