"""Cancelling: a write whose caller is cancelled at any await has happened whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, Final

from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import Grant
from vitehub_chat.testing.checks.expecting import equal, holds
from vitehub_chat.testing.checks.lines import LEASE, Line, new_line
from vitehub_chat.testing.checks.material import append, new_key, numbers_of, stored, stored_ids
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("cancelling")

_MOST_AWAITS: Final = 500


@group
async def check_a_cancelled_append_is_whole(open_state: OpenState, clock: FakeClock) -> None:
    """Store a batch whole or not when its caller is cancelled, and go on."""
    async with open_state(clock) as state:

        async def attempt(cancel: _Cancel) -> None:
            key = new_key()
            await cancel(append(state, key, "m1", "m2", "m3"))
            await append(state, key, "last")
            found = await stored_ids(state, key)
            whole = (["m1", "m2", "m3", "last"], ["last", "m1", "m2", "m3"], ["last"])
            holds(found in whole, f"stored is {found}")
            equal(numbers_of(await stored(state, key))[0], 1, "the first number")

        await _at_every_await(attempt)


@group
async def check_a_cancelled_admission_strands_nothing(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Accept a message whole or not when its caller is cancelled; the line goes on."""
    async with open_state(clock) as state:

        async def attempt(cancel: _Cancel) -> None:
            line = new_line(state)
            await cancel(line.admit("a", claim_id="a"))
            clock.advance(seconds=LEASE.total_seconds())
            admission = await line.admit("b")
            clock.advance(seconds=LEASE.total_seconds())
            runs = await line.drain(await line.take())
            holds(runs in ([["a"], ["b"]], [["b"]], [["b"], ["a"]]), f"the runs are {runs}")
            equal(admission.verdict, "accepted", "the verdict on the next message")
            equal(await line.take(), None, "who waits in the end")

        await _at_every_await(attempt)


@group
async def check_a_cancelled_record_is_whole(open_state: OpenState, clock: FakeClock) -> None:
    """Record a run whole or not when its caller is cancelled, and record it once in the end."""
    async with open_state(clock) as state:

        async def attempt(cancel: _Cancel) -> None:
            line = new_line(state, "queue")
            first = await line.start("a")
            await line.admit_all("b", "c")
            grant = await line.run(first)
            holds(grant is not None, "there is no run of those that waited")
            if grant is None:
                return
            await cancel(line.record(grant))
            found = await stored_ids(state, line.key)
            holds(found in (["a", "re a"], ["a", "re a", "b", "c"]), f"stored is {found}")
            await line.run(grant)
            expected = ["a", "re a", "b", "c", "re c"]
            equal(await stored_ids(state, line.key), expected, "the rows in the end")

        await _at_every_await(attempt)


@group
async def check_a_cancelled_end_is_whole(open_state: OpenState, clock: FakeClock) -> None:
    """Write answer, end and next run together or not at all when the caller is cancelled."""
    async with open_state(clock) as state:

        async def attempt(cancel: _Cancel) -> None:
            line = new_line(state)
            grant = await line.start("a")
            await line.admit_all("b")
            await line.record(grant)
            await cancel(line.finish(grant))
            await _expect_whole_end(line, grant)

        await _at_every_await(attempt)


@group
async def check_a_cancelled_clear_is_whole(open_state: OpenState, clock: FakeClock) -> None:
    """Delete everything or nothing when the caller is cancelled."""
    async with open_state(clock) as state:

        async def attempt(cancel: _Cancel) -> None:
            key = new_key()
            await append(state, key, "m1", "m2")
            await cancel(state.sessions.clear(key))
            holds(await stored_ids(state, key) in ([], ["m1", "m2"]), "some rows are deleted")
            await state.sessions.clear(key)
            equal(await stored_ids(state, key), [], "the rows in the end")
            equal(numbers_of(await append(state, key, "m1")), [3], "the next number")

        await _at_every_await(attempt)


@group
async def check_a_cancelled_read_harms_nothing(open_state: OpenState, clock: FakeClock) -> None:
    """Answer the next call when the caller of a read is cancelled."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1")

        async def attempt(cancel: _Cancel) -> None:
            await cancel(stored(state, key))
            equal(await stored_ids(state, key), ["m1"], "the rows")

        await _at_every_await(attempt)


@group
async def check_a_cancelled_opening_may_be_repeated(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Open at the next attempt when the first one is cancelled."""

    async def attempt(cancel: _Cancel) -> None:
        key, state = new_key(), open_state(clock)
        await cancel(_open(state))
        async with state:
            await append(state, key, "m1")
            equal(await stored_ids(state, key), ["m1"], "the rows")

    await _at_every_await(attempt)


@group
async def check_a_cancelled_closing_may_be_repeated(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Close at the next attempt when the first one is cancelled, and open again."""

    async def attempt(cancel: _Cancel) -> None:
        state = open_state(clock)
        for name in ("m1", "m2"):
            key = new_key()
            async with state:
                await append(state, key, name)
                equal(await stored_ids(state, key), [name], "the rows")
                if name == "m1":
                    await cancel(state.aclose())

    await _at_every_await(attempt)


async def _open(state: AgentState) -> None:
    await state.__aenter__()


@group
async def check_a_cancelled_change_of_a_list_is_whole(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Append all items or none when the caller is cancelled, and go on."""
    async with open_state(clock) as state:

        async def attempt(cancel: _Cancel) -> None:
            key = new_key()
            await cancel(state.values.append_to_list("k", items=[1, 2, 3], scope=key))
            await state.values.append_to_list("k", items=["last"], scope=key)
            found = await state.values.get_list("k", scope=key)
            whole = ([1, 2, 3, "last"], ["last", 1, 2, 3], ["last"])
            holds(found in whole, f"the items are {found}")

        await _at_every_await(attempt)


async def _expect_whole_end(line: Line, grant: Grant) -> None:
    """Look for a half-written end; the write may still be under way while we look."""
    before = await stored_ids(line.state, line.key)
    outcome = await line.outcome("a")
    after = await stored_ids(line.state, line.key)
    if before == ["a", "re a"]:
        equal(outcome.state, "ended", "how far a message is whose answer is stored")
    if outcome.state == "ended":
        equal(after, ["a", "re a"], "the rows of a message that has ended")
        equal(await line.states("b"), ["running"], "how far the next message is")
    elif not await line.renew(grant):
        ended = await line.outcome("a")
        equal(ended.state, "ended", "how far a message is whose run does not go on")


class _Cancel:
    """Runs a call in a task that is cancelled at one of its awaits.

    Attributes:
        was_reached: Whether the call had so many awaits.
    """

    def __init__(self, number: int) -> None:
        self._left = number
        self.was_reached = False

    async def __call__(self, call: Coroutine[Any, Any, object]) -> None:
        """Run a call to its end; an error of its own is raised."""
        task = asyncio.ensure_future(_Watched(call, self._count))
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()

    def _count(self) -> None:
        self._left -= 1
        task = asyncio.current_task()
        if self._left == 0 and task is not None:
            self.was_reached = True
            # Not at once: first the task has to wait for what the call waits for.
            asyncio.get_running_loop().call_soon(task.cancel)


class _Watched:
    """A call that tells whenever it is about to wait."""

    def __init__(self, call: Coroutine[Any, Any, object], tell: Callable[[], None]) -> None:
        self._call = call
        self._tell = tell

    def __await__(self) -> Generator[Any, Any, None]:
        """Drive the call: pass on what it waits for, and to it what comes back."""
        step: Callable[[], Any] = partial(self._call.send, None)
        while True:
            try:
                waited = step()
            except StopIteration:
                return
            self._tell()
            try:
                yield waited
            except BaseException as error:  # noqa: BLE001 - the call decides what becomes of it
                step = partial(self._call.throw, error)
            else:
                step = partial(self._call.send, None)


async def _at_every_await(attempt: Callable[[_Cancel], Awaitable[None]]) -> None:
    """Repeat an attempt, cancelled at its first await, its second one, and so on to the last."""
    for number in range(1, _MOST_AWAITS):
        cancel = _Cancel(number)
        await attempt(cancel)
        if not cancel.was_reached:
            return
    raise AssertionError(f"a call waits more than {_MOST_AWAITS} times")
