"""Settling: lines that wait until nobody has said anything for a while."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from vitehub_chat.testing.checks.expecting import equal, present, yes
from vitehub_chat.testing.checks.lines import LEASE, MOMENT, Line, names_of, new_line
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("settling")

WAIT: Final = timedelta(seconds=2)


@group
async def check_a_line_runs_when_it_has_settled(open_state: OpenState, clock: FakeClock) -> None:
    """Let a `debounce` line wait from its newest message on, and run it as one then."""
    async with open_state(clock) as state:
        line = new_line(state, "debounce", debounce=WAIT, max_queue_size=10)
        await _expect_waiting(line, "a", ahead=WAIT)
        clock.advance(seconds=1)
        await _expect_waiting(line, "b", ahead=WAIT)
        clock.advance(seconds=(WAIT - MOMENT).total_seconds())
        equal(await line.take(), None, "what may run a moment before")
        equal((await line.outcome("a")).settles_in, MOMENT, "how long it still waits")
        clock.advance(microseconds=1)
        yes((await line.outcome("a")).is_stalled, "whether somebody has to take it")
        equal(await line.drain(await line.take()), [["a", "b"]], "the runs")


@group
async def check_a_full_line_has_settled(open_state: OpenState, clock: FakeClock) -> None:
    """Run a `debounce` line at once when no more messages may wait in it."""
    async with open_state(clock) as state:
        line = new_line(state, "debounce", debounce=WAIT, max_queue_size=3)
        equal([(await line.admit(name)).grant for name in "ab"], [None, None], "what runs before")
        grant = present((await line.admit("c")).grant, "the run of the full line")
        equal(names_of(grant), ["a", "b", "c"], "who runs together")


@group
async def check_a_line_settles_before_its_oldest_message_expires(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Run a `debounce` line in time, however many messages keep it from settling."""
    life, wait = timedelta(seconds=10), timedelta(seconds=4)
    async with open_state(clock) as state:
        line = new_line(state, "debounce", debounce=wait, queue_entry_ttl=life)
        for name in "abc":
            await line.admit(name)
            equal(await line.take(), None, f"what may run behind {name}")
            clock.advance(seconds=3)
        clock.advance(seconds=(timedelta(seconds=1) - MOMENT).total_seconds())
        # The last one is not two seconds old, but the first one would expire in a moment.
        equal(names_of(present(await line.take(), "the run")), ["a", "b", "c"], "who runs")


@group
async def check_what_waits_behind_a_run_settles_too(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Release the lock of a `debounce` line when its run ends, until the next has settled."""
    async with open_state(clock) as state:
        line = new_line(state, "debounce", debounce=WAIT, max_queue_size=10)
        await line.admit("a")
        clock.advance(seconds=WAIT.total_seconds())
        grant = present(await line.take(), "the run")
        await line.admit("b")
        clock.advance(seconds=1)
        equal(await line.run(grant), None, "what runs right behind it")
        await _expect_waiting(line, "c", ahead=WAIT)
        clock.advance(seconds=WAIT.total_seconds())
        equal(await line.drain(await line.take()), [["b", "c"]], "the runs")


@group
async def check_a_message_that_is_taken_back_delays_nobody(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Let a `debounce` line settle as if a message that was taken back had never come."""
    async with open_state(clock) as state:
        line = new_line(state, "debounce", debounce=WAIT, max_queue_size=10)
        await line.admit("a")
        clock.advance(seconds=1)
        await line.admit("b")
        clock.advance(seconds=1)
        found = await state.turns.withdraw(line.ticket("b"), owner="first", lease=LEASE)
        equal(names_of(present(found.next, "the run")), ["a"], "who runs")


async def _expect_waiting(line: Line, name: str, *, ahead: timedelta) -> None:
    """Let a message come, and expect that its line waits so long from now on."""
    admission = await line.admit(name)
    equal((admission.verdict, admission.grant), ("accepted", None), f"the verdict on {name}")
    equal(await line.take(), None, f"what may run behind {name}")
    outcome = await line.outcome(name)
    equal((outcome.state, outcome.is_stalled), ("waiting", False), f"how far {name} is")
    equal(outcome.settles_in, ahead, f"how long {name} waits")
