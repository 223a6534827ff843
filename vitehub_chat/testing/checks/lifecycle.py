"""Lifecycle: opening, closing, and who may use a state at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any, Final

from vitehub_chat.errors import StateClosedError
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import NO_CONTEXT, AgentState
from vitehub_chat.state.values import PageRequest, SessionRequest, TurnEnd, WindowRequest
from vitehub_chat.testing.checks.expecting import equal, holds, present, refused
from vitehub_chat.testing.checks.lines import LEASE, names_of, new_line
from vitehub_chat.testing.checks.material import (
    append,
    ids_of,
    new_key,
    new_tenant,
    numbers_of,
    row,
    stored,
    stored_ids,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("lifecycle")


@group
async def check_use_before_opening_is_refused(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse every call before the state is opened."""
    await _expect_closed(open_state(clock))


@group
async def check_use_after_closing_is_refused(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse every call after the state was closed."""
    async with open_state(clock) as state:
        await append(state, new_key(), "m1")
    await _expect_closed(state)


@group
async def check_closing_twice_does_nothing(open_state: OpenState, clock: FakeClock) -> None:
    """Close once, whether or not it is open and how often it is asked to."""
    state = open_state(clock)
    await state.aclose()
    async with state:
        await state.aclose()
        await state.aclose()
    await asyncio.gather(state.aclose(), state.aclose())
    await _expect_closed(state)


@group
async def check_opening_again_does_nothing(open_state: OpenState, clock: FakeClock) -> None:
    """Stay as it is when it is opened while it is open."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1")
        await state.__aenter__()
        await append(state, key, "m2")
        equal(await stored_ids(state, key), ["m1", "m2"], "what is stored")


@group
async def check_concurrent_opens_are_one(open_state: OpenState, clock: FakeClock) -> None:
    """Share one attempt when one object is opened by many at once."""
    state, key = open_state(clock), new_key()
    await asyncio.gather(*(state.__aenter__() for _ in range(10)))
    await append(state, key, "m1")
    equal(await stored_ids(state, key), ["m1"], "what is stored")
    await state.aclose()
    await refused(StateClosedError, stored(state, key), "reading after the one close")


@group
async def check_a_closed_state_opens_again(open_state: OpenState, clock: FakeClock) -> None:
    """Open again after it was closed."""
    key = new_key()
    state = open_state(clock)
    for name in ("m1", "m2"):
        async with state:
            await append(state, key, name)
            equal((await stored_ids(state, key))[-1:], [name], "the newest row")


@group.needs("one_store")
async def check_a_store_is_opened_by_many_at_once(open_state: OpenState, clock: FakeClock) -> None:
    """Open one store with ten objects at once, and lose nothing that any of them writes."""
    key = new_key()
    states = [open_state(clock) for _ in range(10)]
    await asyncio.gather(*(state.__aenter__() for state in states))
    try:
        await asyncio.gather(
            *(append(state, key, f"m{number}") for number, state in enumerate(states))
        )
        for state in states:
            found = await stored(state, key)
            equal(numbers_of(found), list(range(1, 11)), "the numbers of ten rows")
            equal(sorted(ids_of(found)), [f"m{number}" for number in range(10)], "the ten ids")
    finally:
        await asyncio.gather(*(state.aclose() for state in states))


@group.needs("one_store")
async def check_closing_one_of_two_leaves_the_other(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Keep an object open when another one of the same store is closed."""
    key = new_key()
    async with open_state(clock) as first:
        async with open_state(clock) as second:
            await append(second, key, "m1")
        await append(first, key, "m2")
        equal(await stored_ids(first, key), ["m1", "m2"], "what is stored")


@group.needs("durable")
async def check_rows_survive_reopening(open_state: OpenState, clock: FakeClock) -> None:
    """Keep rows, sessions, summaries and numbers when everybody has closed the store."""
    key = new_key()
    async with open_state(clock) as state:
        before = await append(state, key, "m1", "m2")
        await state.summaries.save_manual(key, session_id=None, text="so far")
    clock.advance(days=1)
    async with open_state(clock) as state:
        equal(await stored(state, key), list(before), "the rows")
        summary = await state.summaries.get_manual(key, session_id=None)
        equal(present(summary, "the summary").text, "so far", "the summary")
        info = await state.sessions.get(key, session_id=None)
        equal(info.message_count, 2, "the count of messages")
        equal(numbers_of(await append(state, key, "m3")), [3], "the next number")


@group.needs("durable")
async def check_turns_survive_reopening(open_state: OpenState, clock: FakeClock) -> None:
    """Keep locks, waiting messages, claims and ends when everybody has closed the store."""
    async with open_state(clock) as state:
        line = new_line(state)
        first = await line.start("a", claim_id="a")
        await line.admit_all("b")
    async with open_state(clock) as state:
        line = line.seen_by(state)
        holds(await line.take() is None, "the lock is free after reopening")
        second = present(await line.run(first), "the run of the message that waited")
        equal(names_of(second), ["b"], "who runs next")
        holds(second.token > first.token, "the token did not rise")
    async with open_state(clock) as state:
        line = line.seen_by(state)
        await line.run(second)
        equal(await line.states("a", "b"), ["ended", "ended"], "how far they are")
        equal((await line.admit("c", claim_id="a")).verdict, "repeat", "the verdict on a repeat")


@group
async def check_other_event_loops_may_use_it(open_state: OpenState, clock: FakeClock) -> None:
    """Serve tasks of several event loops in several threads at once."""
    key = new_key()
    async with open_state(clock) as state:

        async def work(name: str) -> None:
            for number in range(5):
                await append(state, key, f"{name}{number}")

        threads = [asyncio.to_thread(asyncio.run, work(name)) for name in "abc"]
        await asyncio.gather(work("d"), *threads)
        found = await stored(state, key)
        equal(numbers_of(found), list(range(1, 21)), "the numbers of twenty rows")
        equal(len(set(ids_of(found))), 20, "the number of ids")


@group.needs("one_store")
async def check_a_clock_that_is_ahead_harms_nothing(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse nothing and keep the order when two clocks are 15 s and a time zone apart."""
    key = new_key()
    async with open_state(clock) as here, open_state(_AheadClock(clock)) as there:
        for number in range(25):
            await append(here, key, f"here {number}")
            await append(there, key, f"there {number}")
        expected = [f"{side} {number}" for number in range(25) for side in ("here", "there")]
        equal(await stored_ids(here, key), expected, "the order of the rows")
        line = new_line(here)
        first = await line.start("a")
        await line.seen_by(there).admit_all("b")
        second = present(await line.run(first), "the run of the message that waited")
        equal(await line.seen_by(there).run(second), None, "the run after the last one")
        equal(await line.states("a", "b"), ["ended", "ended"], "how far they are")


class _AheadClock:
    """A clock in another time zone that is 15 s ahead of another one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        """Return the time."""
        zone = timezone(timedelta(hours=5, minutes=30))
        return (self._clock.now() + timedelta(seconds=15)).astimezone(zone)


async def _expect_closed(state: AgentState) -> None:
    for name, call in _every_call(state, new_key()).items():
        await refused(StateClosedError, call(), name)


def _every_call(
    state: AgentState, key: ConversationKey
) -> Mapping[str, Callable[[], Awaitable[object]]]:
    turns, transcripts, sessions, summaries = (
        state.turns,
        state.transcripts,
        state.sessions,
        state.summaries,
    )
    request, answer = SessionRequest(conversation=key), row("a1", role="assistant")
    passing_on: dict[str, Any] = {"owner": "first", "lease": LEASE}
    ending: dict[str, Any] = {"answer": answer, "end": TurnEnd(status="complete"), **passing_on}
    window = WindowRequest(limit=1)
    return {
        "admit": partial(new_line(state).admit, "a"),
        "take": partial(turns.take, "lock", **passing_on),
        "record": partial(turns.record, "ticket", rows=[answer], session=request),
        "progress": partial(turns.progress, "ticket", answer=answer, ctx=NO_CONTEXT),
        "finish": partial(turns.finish, "ticket", ctx=NO_CONTEXT, **ending),
        "outcome": partial(turns.outcome, "ticket"),
        "renew": partial(turns.renew, "ticket", lease=LEASE),
        "withdraw": partial(turns.withdraw, "ticket", **passing_on),
        "append": partial(transcripts.append, request, rows=[answer]),
        "get": partial(transcripts.get, key, message_ids=["m1"]),
        "window": partial(transcripts.window, key, session=None, window=window),
        "page": partial(transcripts.page, key, request=PageRequest()),
        "export": partial(stored, state, key),
        "resolve": partial(sessions.resolve, request),
        "list": partial(sessions.list, new_tenant(), agent=None),
        "get session": partial(sessions.get, key, session_id=None),
        "clear": partial(sessions.clear, key),
        "save_manual": partial(summaries.save_manual, key, session_id=None, text="so far"),
        "get_manual": partial(summaries.get_manual, key, session_id=None),
    }
