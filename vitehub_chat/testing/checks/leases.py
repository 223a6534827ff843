"""Leases: who holds a lock, for how long, and that nobody else writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

import attrs

from vitehub_chat.errors import StateConflictError
from vitehub_chat.state.contract import Fence, StateContext
from vitehub_chat.state.values import Grant, NewRow, SessionRequest, TurnEnd
from vitehub_chat.testing.checks.expecting import equal, holds, no, present, refused, yes
from vitehub_chat.testing.checks.lines import LEASE, MOMENT, Line, names_of, new_line, under
from vitehub_chat.testing.checks.material import row, stored, stored_ids
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("leases")


@group
async def check_a_lock_is_held_until_its_lease_is_over(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Hold a lock for exactly its lease, and give it away then under a higher token."""
    async with open_state(clock) as state:
        line = new_line(state)
        first = await line.start("a")
        await line.admit_all("b")
        clock.advance(seconds=(LEASE - MOMENT).total_seconds())
        equal(await line.take(), None, "who takes the lock just before the end")
        clock.advance(microseconds=1)
        no(await line.renew(first), "whether a lease that is over can be renewed")
        second = present(await line.take("second"), "the run after the end of the lease")
        equal((names_of(second), second.ticket_id), (["a"], line.ticket("a")), "who runs")
        holds(second.token > first.token, "the token did not rise")


@group
async def check_renewing_extends_a_lease(open_state: OpenState, clock: FakeClock) -> None:
    """Extend a lease from now on by what is asked for."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.admit_all("b")
        clock.advance(seconds=20)
        yes(await line.renew(grant), "whether it was renewed")
        clock.advance(seconds=(LEASE - MOMENT).total_seconds())
        equal(await line.take(), None, "who takes the renewed lock")
        await line.record(grant)
        clock.advance(microseconds=1)
        following = present(await line.take(), "the run after the end of the lease")
        equal(names_of(following), ["b"], "who runs")


@group
async def check_a_lease_that_is_over_is_never_revived(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse to renew at the end of the lease, though nobody has taken the lock."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        clock.advance(seconds=LEASE.total_seconds())
        for _ in range(2):
            no(await line.renew(grant), "whether it was renewed")
        await refused(StateConflictError, line.record(grant), "a write", code="lock_lost")


@group
async def check_a_stale_renewal_changes_nothing(open_state: OpenState, clock: FakeClock) -> None:
    """Answer a renewal with a stale token by no, and leave the holder its lease."""
    async with open_state(clock) as state:
        line = new_line(state)
        old = await line.start("a")
        clock.advance(seconds=LEASE.total_seconds())
        new = present(await line.take("second"), "the run after the end of the lease")
        clock.advance(seconds=10)
        no(await line.renew(old), "whether the stale token renews")
        outcome = await line.outcome("a")
        equal(present(outcome.grant, "the run").until, new.until, "the end of the new lease")
        yes(await line.renew(new), "whether the holder renews")


@group
async def check_a_finished_run_cannot_be_renewed(open_state: OpenState, clock: FakeClock) -> None:
    """Answer a renewal after the end of the run by no, and one of an unknown ticket too."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.run(grant)
        no(await line.renew(grant), "whether an ended run was renewed")
        unknown = attrs.evolve(grant, ticket_id=line.ticket("unknown"))
        no(await line.renew(unknown), "whether an unknown run was renewed")


@group
async def check_a_waiting_message_is_kept_attended(open_state: OpenState, clock: FakeClock) -> None:
    """Note that somebody still waits for a message, so that it runs where it is waited for."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.admit("b", owner="second")
        for _ in range(3):
            clock.advance(seconds=20)
            await line.renew(grant)
            renewed = await state.turns.renew(line.ticket("b"), lease=LEASE)
            yes(renewed, "whether the waiting message is attended")
        following = present(await line.run(grant), "the next run")
        equal(following.owner, "second", "where it runs")
        unfenced = await state.turns.renew(line.ticket("b"), lease=LEASE)
        no(unfenced, "whether a run is renewed without its token")


@group
async def check_tokens_always_rise(open_state: OpenState, clock: FakeClock) -> None:
    """Give every run a higher token: after an end, a lost lease, a withdrawal, and clearing."""
    async with open_state(clock) as state:
        line = new_line(state)
        tokens = []

        async def begin(name: str) -> Grant:
            grant = await line.start(name)
            tokens.append(grant.token)
            return grant

        await line.run(await begin("a"))
        await line.record(await begin("b"))
        clock.advance(seconds=LEASE.total_seconds())
        await begin("c")
        await line.withdraw("c")
        await line.run(await begin("d"))
        await state.sessions.clear(line.key, delete_session=True)
        await line.run(await begin("e"))
        clock.advance(days=30)
        await begin("f")
        equal(tokens, sorted(set(tokens)), "the tokens")


@group
async def check_a_stale_end_leaves_the_holder_its_lock(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse the end of a run that lost its lock; who holds it goes on."""
    async with open_state(clock) as state:
        line = new_line(state)
        old = await line.start("a")
        await line.record(old)
        clock.advance(seconds=LEASE.total_seconds())
        new = await line.start("b")
        await refused(StateConflictError, line.finish(old), "the end", code="lock_lost")
        equal((await line.admit("c")).grant, None, "a run beside the holder")
        equal(await line.drain(new), [["b"], ["c"]], "the runs")
        equal(await stored_ids(state, line.key), ["a", "b", "re b", "c", "re c"], "the rows")


@group
async def check_an_old_fence_writes_nothing_after_a_takeover(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse every kind of write of a holder whose lock somebody else took."""
    async with open_state(clock) as state:
        line = new_line(state)
        old = await line.start("a")
        await line.record(old)
        clock.advance(seconds=LEASE.total_seconds())
        new = await line.start("b")
        await _expect_refused(line, old, under(old))
        equal(await line.drain(new), [["b"]], "the runs of the holder")


@group
async def check_an_old_fence_writes_nothing_after_its_lease(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse every kind of write at the end of a lease, though nobody has taken the lock."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.record(grant)
        clock.advance(seconds=LEASE.total_seconds())
        await _expect_refused(line, grant, under(grant))


@group
async def check_an_old_fence_writes_nothing_after_the_end(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse every kind of write under a lock that was given back."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.run(grant)
        await _expect_refused(line, grant, under(grant))


@group
async def check_a_fence_is_of_one_lock_and_token(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse a fence with another token of the lock, or with the token of another lock."""
    async with open_state(clock) as state:
        line, other = new_line(state), new_line(state)
        grant = await line.start("a")
        await line.record(grant)
        theirs = await other.start("a")
        for fence in (
            Fence(grant.lock_key, grant.token - 1),
            Fence(grant.lock_key, grant.token + 1),
            Fence(grant.lock_key, theirs.token),
            Fence(theirs.lock_key, grant.token),
            Fence("unknown", grant.token),
        ):
            await _expect_refused(line, grant, StateContext(fence=fence))
        equal((await line.finish(grant)).next, None, "the run behind the holder")


@group
async def check_a_held_fence_writes(open_state: OpenState, clock: FakeClock) -> None:
    """Accept every kind of write under a lock that is held, until the last moment."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.record(grant)
        clock.advance(seconds=(LEASE - MOMENT).total_seconds())
        ctx = under(grant)
        for name, write in _every_write(line, grant, ctx).items():
            if name not in {"clear", "withdraw"}:
                await write()
        expected = ["a", "extra", "re a"]
        equal(await stored_ids(state, line.key), expected, "the rows")


@group
async def check_the_time_of_a_call_may_be_given(open_state: OpenState, clock: FakeClock) -> None:
    """Take `ctx.now` for the time of a call in place of the clock's."""
    async with open_state(clock) as state:
        line = new_line(state)
        later = clock.now() + timedelta(hours=1)
        admission = await line.admit("a", ctx=StateContext(now=later))
        grant = present(admission.grant, "the grant")
        equal(grant.until, later + LEASE, "the end of the lease")
        clock.advance(hours=1)
        recorded = await line.record(grant)
        equal([each.recorded_at for each in recorded.rows], [later], "the time of the row")


async def _expect_refused(line: Line, grant: Grant, ctx: StateContext) -> None:
    """Try every kind of write under a fence that does not hold, and look for traces."""
    before = await _everything(line)
    for name, write in _every_write(line, grant, ctx).items():
        await refused(StateConflictError, write(), name, code="lock_lost")
        equal(await _everything(line), before, f"what is stored after {name}")


async def _everything(line: Line) -> object:
    state, key = line.state, line.key
    return (
        await stored(state, key),
        await state.sessions.list(key.tenant, agent=None),
        await state.summaries.get_manual(key, session_id=None),
        [await line.outcome(name) for name in ("a", "b", "extra")],
    )


def _every_write(
    line: Line, grant: Grant, ctx: StateContext
) -> Mapping[str, Callable[[], Awaitable[object]]]:
    state, ticket, answer = line.state, grant.ticket_id, row("re a", role="assistant")
    request = SessionRequest(conversation=line.key)
    extra: list[NewRow] = [row("extra")]
    passing_on: dict[str, Any] = {"owner": "first", "lease": LEASE, "ctx": ctx}
    ending: dict[str, Any] = {"answer": answer, "end": TurnEnd(status="complete"), **passing_on}
    saving: dict[str, Any] = {"session_id": None, "text": "so far", "ctx": ctx}
    return {
        "record": partial(state.turns.record, ticket, rows=extra, session=request, ctx=ctx),
        "progress": partial(state.turns.progress, ticket, answer=answer, ctx=ctx),
        "append": partial(state.transcripts.append, request, rows=extra, ctx=ctx),
        "save_manual": partial(state.summaries.save_manual, line.key, **saving),
        "clear": partial(state.sessions.clear, line.key, ctx=ctx),
        "withdraw": partial(state.turns.withdraw, ticket, **passing_on),
        "take": partial(state.turns.take, line.lock_key, **passing_on),
        "admit": partial(line.admit, "extra", claim_id="extra", ctx=ctx),
        "finish": partial(state.turns.finish, ticket, **ending),
    }
