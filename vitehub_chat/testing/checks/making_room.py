"""Making room: a turn takes the place of stored messages, in one step with its record."""

from __future__ import annotations

from typing import Final

from vitehub_chat.errors import ChatBusyError, NotFoundError
from vitehub_chat.model.rows import Truncated
from vitehub_chat.state.values import Grant, PageRequest, Recorded, SessionRequest, WindowRequest
from vitehub_chat.testing.checks.expecting import equal, present, refused
from vitehub_chat.testing.checks.lines import Line, new_line, under
from vitehub_chat.testing.checks.material import (
    FOREVER,
    MANUAL,
    append,
    ids_of,
    numbers_of,
    row,
    stored_ids,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("making_room")

WHOLE: Final = WindowRequest(limit=9)


async def record(line: Line, grant: Grant, replaces: str, message_id: str) -> Recorded:
    """Record one message in the place of those from another one on."""
    return await line.state.turns.record(
        grant.ticket_id,
        rows=[row(message_id, "better")],
        session=SessionRequest(conversation=line.key),
        window=WHOLE,
        replaces=replaces,
        ctx=under(grant),
    )


@group
async def check_an_edited_message_takes_the_place_of_all_from_it_on(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Cut, append with a new number and read the window, all at once."""
    async with open_state(clock) as state:
        line = new_line(state)
        for name in ("m1", "m2", "m3"):
            await line.run(await line.start(name, claim_id=name))
        grant = await line.start("m2 again", claim_id="m2", replaces="m2")
        recorded = await record(line, grant, "m2", "m2")
        expected = Truncated(deleted=4, live_edge_seq=2, generation=1, summary="kept")
        equal(recorded.truncated, expected, "what was cut")
        equal(numbers_of(recorded.rows), [7], "the number of the message")
        equal(recorded.rows[0].turn_no, 2, "the number of the turn")
        equal(ids_of(recorded.window.shown), ["m1", "re m1"], "the window")
        equal(await stored_ids(state, line.key), ["m1", "re m1", "m2"], "the rows")
        await line.finish(grant)
        info = await state.sessions.get(line.key, session_id=None)
        equal(info.message_count, 4, "the count of messages")
        again = await line.admit("m3 again", claim_id="m3")
        equal(again.verdict, "accepted", "the verdict on what was cut")


@group
async def check_an_answer_is_made_anew(open_state: OpenState, clock: FakeClock) -> None:
    """Cut the answer alone; its question is replaced in its place."""
    async with open_state(clock) as state:
        line = new_line(state)
        await line.run(await line.start("m1", claim_id="m1"))
        await line.run(await line.start("m2", claim_id="m2"))
        grant = await line.start("anew", claim_id="m2", replaces="re m2")
        recorded = await record(line, grant, "re m2", "m2")
        equal(present(recorded.truncated, "what was cut").deleted, 1, "the count")
        equal(numbers_of(recorded.rows), [3], "the number of the question")
        await line.finish(grant)
        equal(await stored_ids(state, line.key), ["m1", "re m1", "m2", "re anew"], "the rows")


@group
async def check_an_ended_turn_is_a_repeat_but_for_who_replaces_it(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Write the claim anew, so that from then on the new turn is what is repeated."""
    async with open_state(clock) as state:
        line = new_line(state)
        await line.run(await line.start("m1", claim_id="m1"))
        first = await line.admit("same", claim_id="m1")
        equal((first.verdict, first.ticket_id), ("repeat", line.ticket("m1")), "a repeat")
        grant = await line.start("anew", claim_id="m1", replaces="m1")
        await record(line, grant, "m1", "m1")
        await line.finish(grant)
        again = await line.admit("same again", claim_id="m1")
        equal((again.verdict, again.ticket_id), ("repeat", line.ticket("anew")), "a repeat of it")


@group
async def check_nothing_is_replaced_while_a_turn_waits_or_runs(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse at once, and leave rows, claims and the line as they are."""
    async with open_state(clock) as state:
        line = new_line(state, "queue")
        await line.run(await line.start("m1", claim_id="m1"))
        running = await line.start("m2", claim_id="m2")
        for lock_key in (line.lock_key, f"{line.lock_key} of another scope"):
            refusal = line.admit("anew", claim_id="m1", replaces="m1", lock_key=lock_key)
            await refused(ChatBusyError, refusal, "replacing beside a turn")
        await line.record(running)
        refusal = line.admit("anew", claim_id="m1", replaces="m1")
        await refused(ChatBusyError, refusal, "replacing beside a recorded turn")
        await line.finish(running)
        expected = ["m1", "re m1", "m2", "re m2"]
        equal(await stored_ids(state, line.key), expected, "the rows")
        equal((await line.admit("same", claim_id="m1")).verdict, "repeat", "the claim")
        equal(await line.states("anew"), ["unknown"], "the refused one")


@group
async def check_a_replacement_runs_alone(open_state: OpenState, clock: FakeClock) -> None:
    """Run nothing together with it that comes later."""
    async with open_state(clock) as state:
        line = new_line(state, "queue")
        await append(state, line.key, "m1")
        elsewhere = new_line(state, "queue")
        holder = await line.start("x", conversation=elsewhere.key)
        equal((await line.admit("anew", replaces="m1")).verdict, "accepted", "the verdict")
        equal((await line.admit("m2")).verdict, "accepted", "the verdict on a later one")
        await state.turns.record(
            holder.ticket_id,
            rows=[row("x", "x")],
            session=SessionRequest(conversation=elsewhere.key),
            ctx=under(holder),
        )
        following = present((await line.finish(holder)).next, "who is next")
        equal([each.ticket_id for each in following.entries], [line.ticket("anew")], "its group")


@group
async def check_what_is_not_there_is_not_replaced(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse an unknown message, also one of another session, and write nothing."""
    async with open_state(clock) as state:
        line = new_line(state)
        await line.run(await line.start("m1", claim_id="m1"))
        refusal = line.admit("anew", claim_id="m1", replaces="m9")
        await refused(NotFoundError, refusal, "replacing what is not there")
        equal((await line.admit("same", claim_id="m1")).verdict, "repeat", "the claim")
        grant = await line.start("late")
        await refused(NotFoundError, record(line, grant, "m9", "m9"), "recording in its place")
        await refused(
            NotFoundError,
            state.turns.record(
                grant.ticket_id,
                rows=[row("m9", "x")],
                session=SessionRequest(conversation=line.key, policy=MANUAL, base="s1"),
                replaces="m1",
                ctx=under(grant),
            ),
            "replacing a message of another session",
        )
        equal(await stored_ids(state, line.key), ["m1", "re m1"], "the rows")
        await line.run(grant)


@group
async def check_the_summary_is_that_of_what_is_left(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Go back to the checkpoint below the cut, or to none."""
    async with open_state(clock) as state:
        line = new_line(state)
        await append(state, line.key, "m1", "m2", "m3", "m4")
        for text, anchor in (("one", 2), ("three", 4)):
            since = present(
                await state.summaries.get_rolling(line.key, session_id=None), "the rolling state"
            )
            await state.summaries.commit_roll(
                line.key,
                session_id=None,
                since=since,
                summary=text,
                anchor=anchor,
                system_seqs=(),
                model=None,
                checkpoints_kept=9,
            )
        for replaces, verdict, left in (("m3", "restored", "one"), ("m1", "reset", "")):
            grant = await line.start(f"anew {replaces}", replaces=replaces)
            recorded = await record(line, grant, replaces, replaces)
            equal(present(recorded.truncated, "what was cut").summary, verdict, "the verdict")
            await line.finish(grant)
            found = await state.summaries.get_rolling(line.key, session_id=None)
            equal(present(found, "the rolling state").summary, left, "the summary")


@group.needs("options")
async def check_forever_keeps_what_was_replaced(open_state: OpenState, clock: FakeClock) -> None:
    """Keep the old messages out of sight, also under the id that is used again."""
    async with open_state(clock, **FOREVER) as state:
        line = new_line(state)
        await line.run(await line.start("m1"))
        grant = await line.start("anew", replaces="m1")
        await record(line, grant, "m1", "m1")
        equal(await stored_ids(state, line.key), ["m1"], "the rows")
        page = await state.transcripts.page(line.key, request=PageRequest(include_superseded=True))
        equal(numbers_of(page.items), [1, 2, 3], "all that was said")
        await line.finish(grant)
