"""Interleavings: in whatever order steps meet, every message is answered once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from vitehub_chat.state.values import Grant
from vitehub_chat.testing.checks.expecting import equal
from vitehub_chat.testing.checks.lines import LEASE, OWNER, Line, names_of, new_line
from vitehub_chat.testing.checks.material import ids_of, numbers_of, stored
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("interleavings")

_EACH: Final = 8


@group
async def check_no_order_of_steps_strands_a_message(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Answer every message once, in every order of admitting some and running others."""
    async with open_state(clock) as state:
        for strategy in ("serial", "queue"):
            for order in _orders("hhhh", "aaa"):
                await _play(new_line(state, strategy), order)


@group
async def check_no_order_of_withdrawing_strands_a_message(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Answer every message but the withdrawn one, whenever it is taken back."""
    async with open_state(clock) as state:
        for order in _orders("hhhh", "aaw"):
            await _play(new_line(state), order)


@group
async def check_tasks_that_meet_run_one_at_a_time(open_state: OpenState, clock: FakeClock) -> None:
    """Answer every message once and no two at once, when many tasks send and run them."""
    async with open_state(clock) as state:
        await _meet([new_line(state)] * 4)
        await _meet([new_line(state, "queue")] * 4)


@group.needs("one_store")
async def check_objects_that_meet_run_one_at_a_time(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Answer every message once and no two at once, when several objects send and run them."""
    async with open_state(clock) as one, open_state(clock) as two:
        line = new_line(one)
        await _meet([line, line.seen_by(two)])


@group
async def check_a_line_of_dead_holders_is_drained_in_order(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Run by arrival what one holder after the other left when it died."""
    async with open_state(clock) as state:
        line = new_line(state)
        await line.start("a")
        await line.admit_all("b", "c", "d")
        runs = []
        for records in (False, True, True, False):
            clock.advance(seconds=LEASE.total_seconds())
            grant = await line.take()
            if grant is not None:
                runs.append(names_of(grant))
                if records:
                    await line.record(grant)
        equal(runs, [["a"], ["a"], ["b"], ["c"]], "the runs that died")
        clock.advance(seconds=LEASE.total_seconds())
        equal(await line.drain(await line.take()), [["c"], ["d"]], "the runs that ended")
        equal(await line.states(*"abcd"), ["lost", "lost", "ended", "ended"], "how far they are")


def _orders(first: str, second: str) -> Iterator[str]:
    """Yield every way to merge two sequences of steps."""
    count = len(first) + len(second)
    for places in combinations(range(count), len(second)):
        steps, others = iter(first), iter(second)
        yield "".join(next(others if place in places else steps) for place in range(count))


async def _play(line: Line, order: str) -> None:
    """Let the holder (h) record and finish, a guest arrive (a) and take one back (w), as told."""
    grant: Grant | None = await line.start("m0")
    is_recorded, arrived, withdrawn = False, ["m0"], set[str]()
    for step in order:
        if step == "a":
            name = f"m{len(arrived)}"
            arrived.append(name)
            grant = (await line.admit(name)).grant or grant
        elif step == "w":
            found = await line.state.turns.withdraw(line.ticket("m1"), owner=OWNER, lease=LEASE)
            if found.withdrawn:
                withdrawn.add("m1")
                grant = found.next or (None if _is_of(grant, "m1") else grant)
        elif grant is not None and not is_recorded:
            await line.record(grant)
            is_recorded = True
        elif grant is not None:
            grant, is_recorded = (await line.finish(grant)).next, False
    if grant is not None:
        following = (await line.finish(grant)).next if is_recorded else grant
        await line.drain(following)
    await _expect_answered(line, [name for name in arrived if name not in withdrawn], order)


def _is_of(grant: Grant | None, name: str) -> bool:
    return grant is not None and names_of(grant) == [name]


async def _meet(lines: Sequence[Line]) -> None:
    """Let one task per line send messages and run whatever it is granted."""
    running: list[str] = []

    async def run(line: Line, grant: Grant | None) -> None:
        while grant is not None:
            running.append(grant.ticket_id)
            equal(running, [grant.ticket_id], "the runs at one time")
            await line.record(grant)
            await asyncio.sleep(0)
            running.remove(grant.ticket_id)
            grant = (await line.finish(grant)).next

    async def send(number: int, line: Line) -> None:
        for each in range(_EACH):
            await run(line, (await line.admit(f"{number} {each}")).grant)

    await asyncio.gather(*(send(number, line) for number, line in enumerate(lines)))
    names = [f"{number} {each}" for number in range(len(lines)) for each in range(_EACH)]
    await _expect_answered(lines[0], names, "tasks that meet")


async def _expect_answered(line: Line, names: Sequence[str], order: str) -> None:
    """Expect that every message is stored and has ended, and that none waits."""
    found = await stored(line.state, line.key)
    said = [each for each in ids_of(found) if not each.startswith("re ")]
    equal(sorted(said), sorted(names), f"the messages stored after {order}")
    equal(numbers_of(found), list(range(1, len(found) + 1)), f"the numbers after {order}")
    equal(set(await line.states(*names)), {"ended"}, f"how far they are after {order}")
    equal(await line.take(), None, f"who waits after {order}")
