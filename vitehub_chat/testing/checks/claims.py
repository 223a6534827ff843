"""Claims: a repeated message is recognised, and how every message ended is remembered."""

from __future__ import annotations

import asyncio
from typing import Final

from vitehub_chat.state.values import SessionRequest, TurnEnd
from vitehub_chat.testing.checks.expecting import equal, holds, no, present, yes
from vitehub_chat.testing.checks.lines import (
    DEDUPE_TTL,
    LEASE,
    MOMENT,
    OWNER,
    Line,
    answer_to,
    new_line,
    under,
)
from vitehub_chat.testing.checks.material import row, rows, stored_ids
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("claims")

_HOUR: Final = 3600


@group
async def check_a_repeat_is_recognised_at_every_stage(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Name the first acceptance for a repeat: when it waits, runs, is recorded, and has ended."""
    async with open_state(clock) as state:
        line = new_line(state)
        first = await line.start("a")
        await line.admit("b", claim_id="b")
        await _expect_repeat(line, "while it waits")
        await line.record(first)
        grant = present((await line.finish(first)).next, "the run of the claimed message")
        await _expect_repeat(line, "while it runs")
        await line.record(grant)
        await _expect_repeat(line, "when it is recorded")
        await line.finish(grant)
        await _expect_repeat(line, "when it has ended")
        equal(await stored_ids(state, line.key), ["a", "re a", "b", "re b"], "the rows")


@group
async def check_one_of_many_repeats_is_accepted(open_state: OpenState, clock: FakeClock) -> None:
    """Accept one of twenty messages of the same id that come at once."""
    async with open_state(clock) as state:
        line = new_line(state)
        calls = [line.admit(f"a{number}", claim_id="m1") for number in range(20)]
        answers = await asyncio.gather(*calls)
        accepted = [each for each in answers if each.verdict == "accepted"]
        equal(len(accepted), 1, "the number of accepted messages")
        tickets = {each.ticket_id for each in answers}
        equal(tickets, {accepted[0].ticket_id}, "the tickets to follow")


@group.needs("one_store")
async def check_repeats_at_two_objects_are_accepted_once(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Accept one of many messages of the same id that come to two objects."""
    async with open_state(clock) as one, open_state(clock) as two:
        lines = [new_line(one)]
        lines.append(lines[0].seen_by(two))
        calls = [lines[n % 2].admit(f"a{n}", claim_id="m1") for n in range(20)]
        answers = await asyncio.gather(*calls)
        verdicts = sorted(each.verdict for each in answers)
        equal(verdicts, ["accepted", *["repeat"] * 19], "the verdicts")


@group
async def check_without_an_id_nothing_is_a_repeat(open_state: OpenState, clock: FakeClock) -> None:
    """Accept every message that makes no claim."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.admit_all("b", "c")
        equal(await line.drain(grant), [["a"], ["b"], ["c"]], "the runs")


@group
async def check_a_claim_ends_after_its_time(open_state: OpenState, clock: FakeClock) -> None:
    """Keep a claim for its time from acceptance, and let the id run again at the end of it."""
    async with open_state(clock) as state:
        line = new_line(state)
        await line.run(await line.start("a", claim_id="m1"))
        clock.advance(seconds=(DEDUPE_TTL - MOMENT).total_seconds())
        equal((await line.admit("b", claim_id="m1")).verdict, "repeat", "just before")
        equal(await line.states("a"), ["ended"], "how far it is")
        clock.advance(microseconds=1)
        await line.start("c", claim_id="m1")


@group
async def check_a_claim_lasts_until_its_turn_ends(open_state: OpenState, clock: FakeClock) -> None:
    """Keep the claim of a turn that runs longer than claims last."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a", claim_id="m1")
        for _ in range(40):
            clock.advance(seconds=LEASE.total_seconds() - 1)
            holds(await line.renew(grant), "the lease cannot be renewed")
        equal((await line.admit("b", claim_id="m1")).verdict, "repeat", "while it runs")
        await line.record(grant)
        await line.finish(grant)
        equal(await line.states("a"), ["ended"], "how far it is")


@group
async def check_a_withdrawn_message_may_come_again(open_state: OpenState, clock: FakeClock) -> None:
    """Take a message back with its claim, while it waits and while its run has recorded nothing."""
    async with open_state(clock) as state:
        line = new_line(state)
        first = await line.start("a", claim_id="a")
        await line.admit("b", claim_id="b")
        yes(await line.withdraw("b"), "whether a waiting message was taken back")
        equal((await line.admit("c", claim_id="b")).verdict, "accepted", "its id again")
        yes(await line.withdraw("a"), "whether a running message was taken back")
        equal(await line.states("a", "b", "c"), ["unknown", "unknown", "running"], "how far")
        no(await line.renew(first), "whether the withdrawn run can be renewed")
        equal((await line.admit("d", claim_id="a")).verdict, "accepted", "its id again")


@group
async def check_what_is_recorded_cannot_be_withdrawn(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Do nothing for a message that is recorded, has ended or is unknown."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a", claim_id="a")
        await line.record(grant)
        no(await line.withdraw("a"), "whether a recorded message was taken back")
        await line.finish(grant)
        no(await line.withdraw("a"), "whether an ended message was taken back")
        no(await line.withdraw("b"), "whether an unknown message was taken back")
        equal((await line.admit("c", claim_id="a")).verdict, "repeat", "the claim")
        equal(await stored_ids(state, line.key), ["a", "re a"], "the rows")


@group
async def check_the_others_of_a_withdrawn_run_wait_again(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Let those who were to run with a withdrawn message run without it."""
    async with open_state(clock) as state:
        line = new_line(state, "queue")
        first = await line.start("a")
        await line.admit_all("b", "c")
        await line.run(first)
        found = await state.turns.withdraw(line.ticket("c"), owner=OWNER, lease=LEASE)
        yes(found.withdrawn, "whether it was taken back")
        equal(await line.drain(found.next), [["b"]], "the runs")


@group
async def check_the_claim_of_a_lost_turn_is_taken_over(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Let a repeat run whose first turn died when it was recorded, and replace its row."""
    async with open_state(clock) as state:
        line = new_line(state)
        dead = await line.start("a", claim_id="m1")
        await line.record(dead, given=rows("m1"))
        clock.advance(seconds=LEASE.total_seconds())
        equal(await line.states("a"), ["lost"], "how far the dead turn is")
        grant = await line.start("b", claim_id="m1")
        await line.record(grant, given=rows("m1"))
        await line.finish(grant)
        equal(await stored_ids(state, line.key), ["m1", "re b"], "the rows")
        equal((await line.admit("c", claim_id="m1")).ticket_id, line.ticket("b"), "the claim")


@group
async def check_the_repeat_of_an_unrecorded_dead_turn_runs_it(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Grant a message that its dead holder had not recorded, when it is sent again."""
    async with open_state(clock) as state:
        line = new_line(state)
        await line.start("a", claim_id="m1")
        clock.advance(seconds=LEASE.total_seconds())
        outcome = await line.outcome("a")
        equal((outcome.state, outcome.is_stalled), ("waiting", True), "how far it is")
        again = await line.admit("b", claim_id="m1", owner="second")
        equal((again.verdict, again.ticket_id), ("repeat", line.ticket("a")), "the repeat")
        equal(await line.drain(again.grant), [["a"]], "the runs")


@group
async def check_the_end_of_a_turn_is_remembered(open_state: OpenState, clock: FakeClock) -> None:
    """Return how a turn ended, with its answer, as it was told."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        recorded = await line.record(grant)
        run = {"origin": "portal", "annotations": {"é\0": [1, None]}}
        end = TurnEnd(
            status="interrupted",
            finish_reason="timeout",
            session_id="s1",
            run=run,
            message=answer_to(grant).message,
        )
        finished = await state.turns.finish(
            grant.ticket_id,
            answer=answer_to(grant),
            end=end,
            owner=OWNER,
            lease=LEASE,
            ctx=under(grant),
        )
        outcome = await line.outcome("a")
        equal((outcome.state, outcome.end), ("ended", end), "how it ended")
        answer = present(finished.row, "the row of the answer")
        last = recorded.rows[-1]
        equal((answer.seq, answer.turn_no), (last.seq + 1, last.turn_no), "the answer's place")


@group
async def check_an_end_without_rows_keeps_its_answer(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Remember the answer of a turn that stores nothing."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await state.turns.record(grant.ticket_id, rows=(), session=None, ctx=under(grant))
        await line.finish(grant)
        end = present((await line.outcome("a")).end, "the end")
        equal(end.message, answer_to(grant).message, "the answer")
        equal(await stored_ids(state, line.key), [], "what is stored")


@group
async def check_ends_are_forgotten_in_time(open_state: OpenState, clock: FakeClock) -> None:
    """Forget ended turns some time after their claims are over, with later turns."""
    async with open_state(clock) as state:
        line = new_line(state)
        for name in "abc":
            await line.run(await line.start(name))
        clock.advance(seconds=DEDUPE_TTL.total_seconds() + _HOUR)
        for name in "defghi":
            await line.run(await line.start(name))
        equal(await line.states("a", "b", "c"), ["unknown"] * 3, "how far the old ones are")
        equal(await line.states("h", "i"), ["ended"] * 2, "how far the new ones are")


@group
async def check_a_growing_answer_is_replaced_in_place(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Write the answer so far again and again as one row, and finish it in its place."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.record(grant)
        for text in ("so", "so far"):
            answer = row("re a", text, role="assistant", status="pending")
            found = await state.turns.progress(grant.ticket_id, answer=answer, ctx=under(grant))
            equal((found.seq, found.status, found.message.text), (2, "pending", text), "the row")
        finished = await line.finish(grant)
        answer_row = present(finished.row, "the row of the answer")
        found_last = (answer_row.seq, answer_row.status, answer_row.message.text)
        equal(found_last, (2, "complete", "yes"), "the row in the end")
        equal(answer_row.turn_id, grant.ticket_id, "the turn of the answer")
        info = await state.sessions.get(line.key, session_id=None)
        equal(info.message_count, 2, "the count of messages")


@group
async def check_a_dead_answer_counts_as_interrupted(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Show an answer as interrupted whose turn died, at once and after the next turn."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.record(grant)
        answer = row("re a", "so f", role="assistant", status="pending")
        await state.turns.progress(grant.ticket_id, answer=answer, ctx=under(grant))
        clock.advance(seconds=LEASE.total_seconds())
        for _ in range(2):
            found = await state.transcripts.get(line.key, message_ids=["re a"])
            equal([each.status for each in found], ["interrupted"], "its status")
            request = SessionRequest(conversation=line.key)
            await state.transcripts.append(request, rows=rows("b"))
        equal(await stored_ids(state, line.key), ["a", "re a", "b"], "the rows")


async def _expect_repeat(line: Line, when: str) -> None:
    again = await line.admit("again", claim_id="b")
    expected = ("repeat", line.ticket("b"), None)
    equal((again.verdict, again.ticket_id, again.grant), expected, f"the repeat {when}")
    equal(await line.states("again"), ["unknown"], f"the ticket of the repeat {when}")
