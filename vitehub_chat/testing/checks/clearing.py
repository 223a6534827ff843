"""Clearing: everything of a conversation goes, and nothing old matches anything new."""

from __future__ import annotations

from typing import Any, Final

from vitehub_chat.errors import ChatBusyError, NotFoundError, StateConflictError, StateError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import NO_CONTEXT
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.expecting import equal, holds, refused
from vitehub_chat.testing.checks.lines import LEASE, new_line
from vitehub_chat.testing.checks.material import (
    MANUAL,
    append,
    new_key,
    numbers_of,
    row,
    stored,
    stored_ids,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("clearing")


@group
async def check_clearing_deletes_everything_that_was_said(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Delete rows, summaries, waiting messages and claims, and count them."""
    async with open_state(clock) as state:
        line = new_line(state)
        await line.run(await line.start("a", claim_id="a"))
        await append(state, line.key, "m1")
        await state.summaries.save_manual(line.key, session_id=None, text="so far")
        counts = await state.sessions.clear(line.key)
        expected = dict.fromkeys(counts, 0) | {"rows": 3, "summaries": 1, "entries": 1}
        equal(dict(counts), expected, "the counts")
        equal(await stored_ids(state, line.key), [], "the rows")
        summary = await state.summaries.get_manual(line.key, session_id=None)
        equal(summary, None, "the summary")
        equal(await line.states("a"), ["unknown"], "how far the message is")
        again = await line.admit("b", claim_id="a")
        equal(again.verdict, "accepted", "the verdict on the id that was claimed")


@group
async def check_clearing_takes_waiting_messages_with_it(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Forget messages that wait, once nobody holds the lock any more."""
    async with open_state(clock) as state:
        line = new_line(state)
        await append(state, line.key, "m1")
        await line.start("a")
        await line.admit_all("b")
        clock.advance(seconds=LEASE.total_seconds())
        counts = await state.sessions.clear(line.key)
        equal(counts["entries"], 2, "the count of messages that waited")
        equal(await line.states("a", "b"), ["unknown"] * 2, "how far they are")
        equal(await line.take(), None, "what is left to run")


@group
async def check_clearing_forgets_a_first_message_that_waits(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Forget what waits in a conversation that nothing was ever stored in."""
    key = new_key()
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.admit("b", conversation=key, claim_id="b")
        counts = await state.sessions.clear(key)
        equal(counts["entries"], 1, "the count of messages that waited")
        equal(await line.drain(grant), [["a"]], "the runs")
        await line.start("c", conversation=key, claim_id="b")


@group
async def check_clearing_again_counts_nothing(open_state: OpenState, clock: FakeClock) -> None:
    """Do nothing when there is nothing left."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1")
        await state.sessions.clear(key)
        before = await state.sessions.get(key, session_id=None)
        counts = await state.sessions.clear(key)
        equal(set(counts.values()), {0}, "the counts")
        equal(await state.sessions.get(key, session_id=None), before, "the session")


@group
async def check_numbers_are_never_used_again(open_state: OpenState, clock: FakeClock) -> None:
    """Go on behind the numbers that were cleared, with the sessions or without."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2")
        await state.sessions.clear(key)
        equal(numbers_of(await append(state, key, "m1")), [3], "the number after clearing")
        await state.sessions.clear(key, delete_session=True)
        equal(numbers_of(await append(state, key, "m1")), [4], "the number after deleting")


@group
async def check_a_cleared_session_stays_and_a_deleted_one_goes(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Keep the session with no messages and a higher generation, or delete it when asked to."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1")
        before = await state.sessions.get(key, session_id=None)
        await state.sessions.clear(key)
        after = await state.sessions.get(key, session_id=None)
        equal((before.message_count, after.message_count), (1, 0), "the counts of messages")
        holds(after.generation > before.generation, "the generation did not rise")
        counts = await state.sessions.clear(key, delete_session=True)
        equal(counts["sessions"], 1, "the count of sessions")
        await refused(NotFoundError, state.sessions.get(key, session_id=None), "the session")
        equal((await state.sessions.list(key.tenant, agent=None)).items, (), "the sessions")


@group
async def check_clearing_a_session_leaves_the_others(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Delete rows and summary of one session alone."""
    key, other = new_key(), new_key()
    async with open_state(clock) as state:
        for place in (key, other):
            for name in ("s1", "s2"):
                await append(state, place, f"{name} m", base=name, policy=MANUAL)
                await state.summaries.save_manual(place, session_id=name, text=name)
        counts = await state.sessions.clear(key, session_id="s1")
        equal((counts["rows"], counts["summaries"]), (1, 1), "the counts")
        equal(await stored_ids(state, key), ["s2 m"], "the rows of the conversation")
        equal(await stored_ids(state, other), ["s1 m", "s2 m"], "the rows of another one")
        for place, name, expected in ((key, "s1", None), (key, "s2", "s2"), (other, "s1", "s1")):
            found = await state.summaries.get_manual(place, session_id=name)
            equal(None if found is None else found.text, expected, f"the summary of {name}")


@group
async def check_nothing_is_cleared_while_a_turn_runs(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse to clear under a running turn, and delete nothing."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.record(grant)
        for deletes in (False, True):
            call = state.sessions.clear(line.key, delete_session=deletes)
            await refused(ChatBusyError, call, "clearing", code="turn_in_progress")
        equal(await stored_ids(state, line.key), ["a"], "what is stored")
        await line.finish(grant)
        counts = await state.sessions.clear(line.key)
        equal(counts["rows"], 2, "the count of rows after the turn")


@group
async def check_a_dead_turn_does_not_hinder_clearing(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Clear when the lease of the turn is over, and let it write nothing afterwards."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.record(grant)
        clock.advance(seconds=LEASE.total_seconds())
        await state.sessions.clear(line.key)
        await refused(StateConflictError, line.finish(grant), "the end of the dead turn")
        equal(await stored(state, line.key), [], "what is stored")


@group
async def check_a_late_answer_finds_nothing_to_answer(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse an answer without a fence whose conversation was cleared."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.record(grant)
        clock.advance(seconds=LEASE.total_seconds())
        await state.sessions.clear(line.key, delete_session=True)
        answer = row("re a", role="assistant")
        call = state.turns.progress(grant.ticket_id, answer=answer, ctx=NO_CONTEXT)
        await refused(StateError, call, "an answer to nothing")
        equal(await stored(state, line.key), [], "what is stored")


@group.needs("one_store")
async def check_what_one_clears_is_gone_for_all(open_state: OpenState, clock: FakeClock) -> None:
    """Clear for every object at once."""
    key = new_key()
    request = SessionRequest(conversation=key)
    async with open_state(clock) as one, open_state(clock) as two:
        await two.transcripts.append(request, rows=[row("m1"), row("m2")])
        await one.sessions.clear(key)
        equal(await stored(two, key), [], "what the other one sees")
        equal(numbers_of(await append(two, key, "m1")), [3], "the next number of the other one")


@group
async def check_a_turn_of_another_thread_hinders_clearing(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse to clear under a turn that arrived elsewhere and runs in a session of this one."""
    key = new_key()
    other = ConversationKey(key.tenant, key.agent, key.channel, "t2")
    async with open_state(clock) as state:
        await append(state, key, "m1", base="s1", policy=MANUAL)
        line = new_line(state)
        grant = await line.start("a", conversation=other, wanted_id="s1")
        request = SessionRequest(conversation=other, policy=MANUAL, base="s1")
        await state.turns.record(grant.ticket_id, rows=[row("a")], session=request)
        for session_id in (None, "s1"):
            call = state.sessions.clear(key, session_id=session_id, delete_session=True)
            await refused(ChatBusyError, call, "clearing", code="turn_in_progress")
        await line.finish(grant)
        counts = await state.sessions.clear(key, delete_session=True)
        equal((counts["rows"], counts["sessions"]), (3, 1), "the counts afterwards")


@group
async def check_claims_of_other_threads_go_with_the_session(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Forget messages that arrived elsewhere, once what they were recorded in is cleared."""
    key = new_key()
    other = ConversationKey(key.tenant, key.agent, key.channel, "t2")
    async with open_state(clock) as state:
        for session_id in (None, "s1"):
            await append(state, key, "m1", base="s1", policy=MANUAL)
            line = new_line(state)
            entry: dict[str, Any] = {"conversation": other, "wanted_id": "s1", "claim_id": "a"}
            grant = await line.start("a", **entry)
            request = SessionRequest(conversation=other, policy=MANUAL, base="s1")
            await state.turns.record(grant.ticket_id, rows=[row("a")], session=request)
            await line.finish(grant)
            await state.sessions.clear(key, session_id=session_id)
            again = await line.admit("b", **entry)
            equal(again.verdict, "accepted", "the verdict on the id that was claimed")
            await line.withdraw("b")


@group
async def check_clearing_a_session_forgets_what_waits_for_it(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Forget messages that wait for the session that is cleared, and no others."""
    async with open_state(clock) as state:
        line = new_line(state)
        await append(state, line.key, "m1", base="s1", policy=MANUAL)
        await line.start("running", wanted_id="s0", conversation=new_key())
        for name, wanted, starts in (("b", "s1", False), ("c", "s2", False), ("d", "s1", True)):
            await line.admit(name, wanted_id=wanted, starts_session=starts)
        counts = await state.sessions.clear(line.key, session_id="s1")
        equal((counts["rows"], counts["entries"]), (1, 1), "the counts")
        equal(await line.states("b", "c", "d"), ["unknown", "waiting", "waiting"], "how far")


@group
async def check_a_turn_of_another_session_does_not_hinder_clearing(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Clear a session while a turn of another one runs."""
    async with open_state(clock) as state:
        line = new_line(state)
        for name in ("s1", "s2"):
            await append(state, line.key, f"{name} m", base=name, policy=MANUAL)
        grant = await line.start("a", wanted_id="s2")
        request = SessionRequest(conversation=line.key, policy=MANUAL, base="s2")
        await state.turns.record(grant.ticket_id, rows=[row("a")], session=request)
        equal((await state.sessions.clear(line.key, session_id="s1"))["rows"], 1, "the count")
        equal(await stored_ids(state, line.key), ["s2 m", "a"], "what is left")
