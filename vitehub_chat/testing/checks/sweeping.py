"""Sweeping: what dead holders leave is found, and what cannot be read is put aside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from vitehub_chat.errors import StateConflictError
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import Grant
from vitehub_chat.testing.checks.expecting import equal, present, refused, yes
from vitehub_chat.testing.checks.lines import LEASE, MOMENT, OWNER, Line, names_of, new_line, under
from vitehub_chat.testing.checks.material import AGENT
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("sweeping")


@group
async def check_a_sweep_takes_the_lines_of_dead_holders(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Take every line whose holder is dead for who waits longest, and no other."""
    async with open_state(clock) as state:
        dead, recorded, live = (new_line(state) for _ in range(3))
        for line in (dead, recorded):
            grant = await line.start("a")
            await line.admit_all("b")
        await recorded.record(grant)
        clock.advance(seconds=1)
        await live.start("a")
        await live.admit_all("b")
        clock.advance(seconds=(LEASE - MOMENT).total_seconds() - 1)
        equal(await _sweep(state, dead, recorded, live), [], "what is swept before")
        clock.advance(microseconds=1)
        swept = await _sweep(state, dead, recorded, live)
        equal([names_of(grant) for grant in swept], [["a"], ["b"]], "what is swept")
        equal([grant.owner for grant in swept], ["sweeper"] * 2, "who has to run it")
        equal(await _sweep(state, dead, recorded, live), [], "what is swept again")
        equal(await recorded.states("a", "b"), ["lost", "running"], "how far they are")
        equal(await dead.drain(swept[0]), [["a"], ["b"]], "the runs")


@group
async def check_a_sweep_is_of_one_agent(open_state: OpenState, clock: FakeClock) -> None:
    """Leave the lines of other agents to those who serve them."""
    async with open_state(clock) as state:
        line = new_line(state)
        other = attrs.evolve(line, key=attrs.evolve(line.key, agent="another"))
        await other.start("a")
        clock.advance(seconds=LEASE.total_seconds())
        equal(await _sweep(state, other), [], "what is swept for one agent")
        found = await _sweep(state, other, agent="another")
        equal([names_of(grant) for grant in found], [["a"]], "what is swept for the other one")


@group
async def check_a_sweep_finds_all_of_many_lines(open_state: OpenState, clock: FakeClock) -> None:
    """Find every line, also more than are looked up at once."""
    count = 120
    async with open_state(clock) as state:
        first = new_line(state)
        keys = [attrs.evolve(first.key, thread=f"t{number}") for number in range(count)]
        lines = [attrs.evolve(first, key=key) for key in keys]
        for line in lines:
            await line.start("a")
        clock.advance(seconds=LEASE.total_seconds())
        found = await _sweep(state, *lines)
        equal(len(found), count, "how many lines are swept")
        for line, grant in zip(lines, found, strict=True):
            await line.finish(grant)


@group
async def check_a_sweep_takes_what_settled_alone(open_state: OpenState, clock: FakeClock) -> None:
    """Take a `debounce` line that nobody looks after, once it has settled."""
    async with open_state(clock) as state:
        line = new_line(state, "debounce", max_queue_size=10)
        await line.admit("a", owner=None)
        equal(await _sweep(state, line), [], "what is swept while it settles")
        clock.advance(seconds=line.policy.debounce.total_seconds())
        found = await _sweep(state, line)
        equal([names_of(grant) for grant in found], [["a"]], "what is swept then")


@group
async def check_a_lock_without_successor_is_free(open_state: OpenState, clock: FakeClock) -> None:
    """Leave waiting what nobody waits for when a holder passes its lock on to nobody."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.admit("b", owner=None)
        await line.record(grant)
        equal((await line.finish(grant, owner="")).next, None, "what runs next")
        yes((await line.outcome("b")).is_stalled, "whether somebody has to take it")
        equal(await line.drain(await line.take()), [["b"]], "the runs of who comes next")
        grant = await line.start("c")
        await line.admit("d", owner="second")
        await line.record(grant)
        following = present((await line.finish(grant, owner="")).next, "what runs next")
        equal((names_of(following), following.owner), (["d"], "second"), "who is waited for")


@group
async def check_what_cannot_be_read_is_put_aside(open_state: OpenState, clock: FakeClock) -> None:
    """End what a holder cannot read, and let the others of its run go on in order."""
    async with open_state(clock) as state:
        line = new_line(state, "queue")
        first = await line.start("a")
        for name in "bcd":
            await line.admit(name, claim_id=name)
        grant = present(await line.run(first), "the run")
        following = present(await _put_aside(line, grant, "b", "d"), "what runs next")
        equal((names_of(following), following.ticket_id), (["c"], line.ticket("c")), "it")
        await refused(StateConflictError, line.record(grant), "the old run", code="lock_lost")
        for name in "bd":
            end = present((await line.outcome(name)).end, f"the end of {name}")
            equal((end.status, end.reason), ("dropped", "unreadable"), f"the end of {name}")
        again = await line.admit("b again", claim_id="b")
        equal(again.verdict, "accepted", "the verdict on who comes again")
        equal(await line.drain(following), [["c"], ["b again"]], "the runs")


@group
async def check_only_a_holder_puts_aside(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse to put aside what another one has taken over, and what is not of the run."""
    async with open_state(clock) as state:
        line, other = new_line(state), new_line(state)
        grant = await line.start("a")
        await other.start("x")
        following = await _put_aside(line, grant, "a", tickets=[other.ticket("x")])
        equal(names_of(present(following, "what runs next")), ["a"], "what runs next")
        equal(await other.states("x"), ["running"], "how far a message of another line is")
        clock.advance(seconds=LEASE.total_seconds())
        late = _put_aside(line, present(following, "it"), "a")
        await refused(StateConflictError, late, "putting aside without a lease", code="lock_lost")
        equal(names_of(present(await line.take(), "the run")), ["a"], "who runs then")


async def _put_aside(
    line: Line, grant: Grant, *names: str, tickets: Sequence[str] | None = None
) -> Grant | None:
    return await line.state.turns.quarantine(
        [line.ticket(name) for name in names] if tickets is None else tickets,
        owner=OWNER,
        lease=LEASE,
        ctx=under(grant),
    )


async def _sweep(state: AgentState, *lines: Line, agent: str = AGENT) -> list[Grant]:
    """Sweep, and return what is of these lines, by line: others may use the same store."""
    found = await state.turns.sweep(agent, owner="sweeper", lease=LEASE)
    by_lock = {grant.lock_key: grant for grant in found}
    return [by_lock[line.lock_key] for line in lines if line.lock_key in by_lock]
