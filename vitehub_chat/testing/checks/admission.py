"""Admission: who runs, who waits, and who is refused."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from vitehub_chat.testing.checks.contents import TEXTS
from vitehub_chat.testing.checks.expecting import equal, holds, present
from vitehub_chat.testing.checks.lines import LEASE, MOMENT, names_of, new_line
from vitehub_chat.testing.checks.material import new_key, stored
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("admission")

LIFE: Final = timedelta(seconds=10)


@group
async def check_a_free_lock_is_granted_at_once(open_state: OpenState, clock: FakeClock) -> None:
    """Run a message at once whose lock is free."""
    async with open_state(clock) as state:
        line = new_line(state)
        admission = await line.admit("a", claim_id="a")
        grant = present(admission.grant, "the grant")
        equal((admission.verdict, admission.reason), ("accepted", None), "the verdict")
        equal((grant.ticket_id, grant.owner), (line.ticket("a"), "first"), "whose run it is")
        equal((grant.lock_key, grant.until), (line.lock_key, clock.now() + LEASE), "the lock")
        equal([(e.ticket_id, e.claim_id) for e in grant.entries], [(line.ticket("a"), "a")], "it")
        outcome = await line.outcome("a")
        equal((outcome.state, outcome.grant), ("running", grant), "how far it is")


@group
async def check_messages_wait_their_turn(open_state: OpenState, clock: FakeClock) -> None:
    """Run the messages of a `serial` line one by one, by arrival."""
    async with open_state(clock) as state:
        line = new_line(state)
        first = await line.start("a")
        await line.admit_all("b", "c", "d")
        equal(await line.states("a", "b"), ["running", "waiting"], "how far they are")
        equal(await line.take(), None, "what may run beside the first one")
        equal(await line.drain(first), [["a"], ["b"], ["c"], ["d"]], "the runs")
        equal(await line.states(*"abcd"), ["ended"] * 4, "how far they are in the end")
        ids = [each.message.id for each in await stored(state, line.key)]
        equal(ids, ["a", "re a", "b", "re b", "c", "re c", "d", "re d"], "the rows")


@group
async def check_messages_that_wait_together_run_together(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Run what waits in a `queue` line at once, the newest one being answered."""
    async with open_state(clock) as state:
        line = new_line(state, "queue")
        first = await line.start("a")
        await line.admit_all("b", "c", "d")
        second = present(await line.run(first), "the run of those that waited")
        equal((names_of(second), second.ticket_id), (["b", "c", "d"], line.ticket("d")), "it")
        equal(await line.drain(second), [["b", "c", "d"]], "the runs")
        for name in "bcd":
            outcome = await line.outcome(name)
            equal((outcome.state, outcome.run_ticket_id), ("ended", line.ticket("d")), name)
            message = present(outcome.end, "the end").message
            equal(present(message, "the answer").id, "re d", f"the answer to {name}")


@group
async def check_what_runs_alone_is_in_no_group(open_state: OpenState, clock: FakeClock) -> None:
    """Run what waits before and behind an entry that `runs_alone` apart from it, in order."""
    async with open_state(clock) as state:
        line = new_line(state, "queue")
        first = await line.start("a")
        await line.admit_all("b", "c")
        equal((await line.admit("d", runs_alone=True)).verdict, "accepted", "the verdict on d")
        await line.admit_all("e", "f")
        equal(await line.drain(first), [["a"], ["b", "c"], ["d"], ["e", "f"]], "the runs")


@group
async def check_groups_are_of_one_lane(open_state: OpenState, clock: FakeClock) -> None:
    """Run messages of different conversations and sessions apart, by their oldest one."""
    other = new_key()
    async with open_state(clock) as state:
        line = new_line(state, "queue")
        grant = await line.start("a")
        await line.admit("b", conversation=other)
        await line.admit("c", wanted_id="s1")
        await line.admit("d", conversation=other)
        await line.admit("e")
        await line.admit("f", wanted_id="s1")
        runs = await line.drain(grant)
        equal(runs, [["a"], ["b", "d"], ["c", "f"], ["e"]], "the runs")


@group
async def check_a_new_session_begins_a_group(open_state: OpenState, clock: FakeClock) -> None:
    """End a group before a message that begins a session, and begin one with it."""
    async with open_state(clock) as state:
        line = new_line(state, "queue")
        grant = await line.start("a")
        for name in "bcde":
            await line.admit(name, starts_session=name == "d")
        equal(await line.drain(grant), [["a"], ["b", "c"], ["d", "e"]], "the runs")


@group
async def check_a_message_runs_where_it_is_waited_for(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Give a run to the owner who waits for it, else to who passes the lock on."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.admit("b", owner="second")
        await line.admit("c", owner=None)
        await line.admit("d", owner="gone")
        owners: list[str] = []
        for _ in range(3):
            await line.record(grant)
            if len(owners) == 2:
                clock.advance(seconds=LEASE.total_seconds() - 1)
                await line.renew(grant)
                clock.advance(seconds=1)
            grant = present((await line.finish(grant)).next, "the next run")
            owners.append(grant.owner)
        equal(owners, ["second", "first", "first"], "the owners of the runs")


@group
async def check_refused_messages_leave_no_trace(open_state: OpenState, clock: FakeClock) -> None:
    """Write nothing of a message that `drop` or `reject` refuse, so that it may come again."""
    async with open_state(clock) as state:
        for strategy, verdict in (("drop", "dropped"), ("reject", "busy")):
            line = new_line(state, strategy)
            grant = await line.start("a")
            refusal = await line.admit("b", claim_id="b")
            found = (refusal.verdict, refusal.reason, refusal.grant)
            equal(found, (verdict, "busy", None), f"the answer of {strategy}")
            equal(await line.states("b"), ["unknown"], "how far it is")
            equal(await line.run(grant), None, "what runs afterwards")
            await line.start("c", claim_id="b")


@group
async def check_a_full_line_drops_the_oldest(open_state: OpenState, clock: FakeClock) -> None:
    """Drop who waits longest when `drop-oldest` is full, and keep the order of the others."""
    async with open_state(clock) as state:
        line = new_line(state, max_queue_size=2, on_queue_full="drop-oldest")
        grant = await line.start("a")
        for name in "bc":
            await line.admit(name, claim_id=name)
        last = await line.admit("d")
        equal((last.verdict, last.pushed_out), ("accepted", (line.ticket("b"),)), "the answer")
        outcome = await line.outcome("b")
        end = present(outcome.end, "the end of the dropped message")
        equal((end.status, end.reason), ("dropped", "queue_full"), "the end")
        equal((await line.admit("e", claim_id="c")).verdict, "repeat", "who waits is claimed")
        equal(await line.drain(grant), [["a"], ["c"], ["d"]], "the runs")
        await line.start("f", claim_id="b")


@group
async def check_a_full_line_refuses_the_newest(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse the new message when `drop-newest` or `reject` are full, and write nothing of it."""
    async with open_state(clock) as state:
        for full, verdict in (("drop-newest", "dropped"), ("reject", "busy")):
            line = new_line(state, max_queue_size=1, on_queue_full=full)
            grant = await line.start("a")
            await line.admit_all("b")
            refusal = await line.admit("c", claim_id="c")
            equal((refusal.verdict, refusal.reason), (verdict, "queue_full"), f"{full}")
            equal(await line.states("c"), ["unknown"], "how far it is")
            equal(await line.drain(grant), [["a"], ["b"]], "the runs")
            await line.start("d", claim_id="c")


@group
async def check_a_line_of_size_none_waits_without_end(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Let any number wait when there is no limit, and run them all by arrival."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a0")
        names = [f"a{number}" for number in range(1, 60)]
        await line.admit_all(*names)
        runs = await line.drain(grant)
        equal(runs, [["a0"], *([name] for name in names)], "the runs")


@group
async def check_a_message_past_its_life_never_runs(open_state: OpenState, clock: FakeClock) -> None:
    """Run a message that waited less than its life, and drop one that reached it."""
    async with open_state(clock) as state:
        line = new_line(state, queue_entry_ttl=LIFE)
        grant = await line.start("a")
        await line.admit("b", claim_id="b")
        clock.advance(microseconds=1)
        await line.admit_all("c")
        clock.advance(seconds=(LIFE - MOMENT).total_seconds())
        outcome = await line.outcome("b")
        end = present(outcome.end, "the end of the expired message")
        equal((outcome.state, end.status, end.reason), ("ended", "dropped", "expired"), "the end")
        equal(await line.drain(grant), [["a"], ["c"]], "the runs")
        equal((await line.outcome("b")).state, "ended", "how far it is in the end")
        await line.start("d", claim_id="b")


@group
async def check_an_expired_message_joins_no_group(open_state: OpenState, clock: FakeClock) -> None:
    """Leave expired messages out of a group, also from its middle."""
    async with open_state(clock) as state:
        line = new_line(state, "queue")
        short = new_line(state, "queue", queue_entry_ttl=LIFE).policy
        grant = await line.start("a")
        await line.admit_all("b")
        await line.admit("c", policy=short)
        await line.admit_all("d")
        clock.advance(seconds=LIFE.total_seconds())
        equal(await line.drain(grant), [["a"], ["b", "d"]], "the runs")


@group
async def check_expired_messages_take_no_place(open_state: OpenState, clock: FakeClock) -> None:
    """Count only messages that may still run when a line is full."""
    async with open_state(clock) as state:
        line = new_line(state, max_queue_size=2, on_queue_full="drop-oldest", queue_entry_ttl=LIFE)
        grant = await line.start("a")
        await line.admit_all("b", "c")
        clock.advance(seconds=LIFE.total_seconds())
        for name in "de":
            equal((await line.admit(name)).pushed_out, (), "who is pushed out")
        equal((await line.admit("f")).pushed_out, (line.ticket("d"),), "who is pushed out")
        equal(await line.drain(grant), [["a"], ["e"], ["f"]], "the runs")
        line = new_line(state, max_queue_size=1, on_queue_full="reject", queue_entry_ttl=LIFE)
        grant = await line.start("a")
        await line.admit_all("b")
        clock.advance(seconds=LIFE.total_seconds())
        await line.admit_all("c")
        equal(await line.drain(grant), [["a"], ["c"]], "the runs of a line that refuses")


@group
async def check_a_dead_line_goes_on_with_its_head(open_state: OpenState, clock: FakeClock) -> None:
    """Give a lock whose lease is over to who waits longest, not to who arrives."""
    async with open_state(clock) as state:
        line = new_line(state)
        dead = await line.start("a")
        await line.record(dead)
        await line.admit_all("b")
        clock.advance(seconds=LEASE.total_seconds())
        holds((await line.outcome("b")).is_stalled, "nobody is told that the line stands still")
        head = present((await line.admit("c")).grant, "the run of who waits longest")
        equal(await line.drain(head), [["b"], ["c"]], "the runs")


@group
async def check_payloads_come_back_exactly(open_state: OpenState, clock: FakeClock) -> None:
    """Return the input of a run as it was given, of a megabyte too."""
    async with open_state(clock) as state:
        line = new_line(state, "queue")
        payloads = [*TEXTS, "0123456789abcde😀" * 65536]
        grant = await line.start("a")
        for number, payload in enumerate(payloads):
            await line.admit(f"b{number}", payload=payload)
        await line.record(grant)
        following = present((await line.finish(grant)).next, "the next run")
        holds([each.payload for each in following.entries] == payloads, "a payload is another one")


@group
async def check_one_of_many_is_granted(open_state: OpenState, clock: FakeClock) -> None:
    """Grant a free lock to one of many who come at once, and let the others wait."""
    async with open_state(clock) as state:
        line = new_line(state)
        answers = await asyncio.gather(*(line.admit(f"a{number}") for number in range(20)))
        grants = [each.grant for each in answers if each.grant is not None]
        equal(len(grants), 1, "the number of grants")
        runs = await line.drain(grants[0])
        names = sorted(name for each in runs for name in each)
        equal(names, sorted(f"a{number}" for number in range(20)), "the messages that ran")


@group
async def check_other_locks_are_free(open_state: OpenState, clock: FakeClock) -> None:
    """Hold one lock and no other one."""
    async with open_state(clock) as state:
        line = new_line(state)
        names = ("", "%", "_", " ")
        for name in names:
            admission = await line.admit(f"of {name!r}", lock_key=f"{line.lock_key}{name}")
            holds(admission.grant is not None, f"another lock holds the one with {name!r}")
