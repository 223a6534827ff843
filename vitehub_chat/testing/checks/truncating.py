"""Truncating: a conversation is cut off in whole units, and nothing of it comes back."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from vitehub_chat.errors import ChatBusyError, NotFoundError, StateConflictError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.rows import Truncated
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.row_requests import TruncateRequest
from vitehub_chat.state.values import NewRow, PageRequest, SessionRequest
from vitehub_chat.testing.checks.expecting import equal, holds, refused
from vitehub_chat.testing.checks.lines import LEASE, new_line
from vitehub_chat.testing.checks.material import (
    FOREVER,
    MANUAL,
    append,
    ids_of,
    new_key,
    numbers_of,
    stored_ids,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("truncating")


def call(call_id: str, message_id: str) -> NewRow:
    """Return an answer that calls a tool."""
    part = {"type": "tool-call", "id": call_id, "name": "look", "input": {}}
    return NewRow(message=Message(message_id, "assistant", (part,)))


def result(call_id: str, message_id: str) -> NewRow:
    """Return what a tool call came to."""
    part = {"type": "tool-result", "id": call_id, "name": "look", "output": 1}
    return NewRow(message=Message(message_id, "tool", (part,)))


async def cut(
    state: AgentState, key: ConversationKey, message_id: str, **request: object
) -> Truncated:
    """Cut a conversation off from a message on."""
    asked = TruncateRequest(message_id=message_id, **request)  # type: ignore[arg-type]
    return await state.transcripts.truncate(key, request=asked)


@group
async def check_everything_from_a_message_on_goes(open_state: OpenState, clock: FakeClock) -> None:
    """Cut the message and all behind it, raise the generation, and use no number again."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2", "m3", "m4")
        before = await state.sessions.get(key, session_id=None)
        answer = await cut(state, key, "m3")
        expected = Truncated(deleted=2, live_edge_seq=2, generation=1, summary="kept")
        equal(answer, expected, "the answer")
        equal(await stored_ids(state, key), ["m1", "m2"], "the rows")
        after = await state.sessions.get(key, session_id=None)
        equal(after.message_count, 2, "the count of messages")
        holds(after.generation > before.generation, "the generation of the session did not rise")
        equal(numbers_of(await append(state, key, "m3")), [5], "the next number")


@group
async def check_cutting_behind_a_message_keeps_it(open_state: OpenState, clock: FakeClock) -> None:
    """Keep the message itself when asked to; with nothing behind it change nothing."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2", "m3")
        answer = await cut(state, key, "m1", inclusive=False)
        equal((answer.deleted, answer.live_edge_seq, answer.generation), (2, 1, 1), "the answer")
        again = await cut(state, key, "m1", inclusive=False)
        equal((again.deleted, again.live_edge_seq, again.generation), (0, 1, 1), "the second one")
        equal(await stored_ids(state, key), ["m1"], "the rows")


@group
async def check_cutting_at_the_first_message_leaves_nothing(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Leave an empty history, and count turns from the beginning."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2")
        answer = await cut(state, key, "m1")
        equal((answer.deleted, answer.live_edge_seq), (2, 0), "the answer")
        page = await state.transcripts.page(key, request=PageRequest())
        equal((page.items, page.at_live_edge, page.generation), ((), True, 1), "the page")
        found = await append(state, key, "m9")
        equal([row.turn_no for row in found], [1], "the number of the next turn")


@group
async def check_a_cut_inside_a_unit_takes_all_of_it(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Never part a call from its results, whichever of them the cut meets."""
    async with open_state(clock) as state:
        for message_id in ("c1", "u2", "r1"):
            key = new_key()
            await append(state, key, "u1")
            batch = [call("x", "c1"), NewRow(message=Message("u2", "user", ())), result("x", "r1")]
            await state.transcripts.append(SessionRequest(conversation=key), rows=batch)
            await append(state, key, "u3")
            answer = await cut(state, key, message_id)
            equal((answer.deleted, answer.live_edge_seq), (4, 1), f"the cut at {message_id}")
            equal(await stored_ids(state, key), ["u1"], "the rows")


@group
async def check_a_call_far_before_its_result_goes_with_it(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Find the call of a result however many messages stand between them."""
    key = new_key()
    async with open_state(clock) as state:
        await state.transcripts.append(SessionRequest(conversation=key), rows=[call("x", "c1")])
        await append(state, key, *(f"m{number}" for number in range(250)))
        await state.transcripts.append(SessionRequest(conversation=key), rows=[result("x", "r1")])
        answer = await cut(state, key, "m249")
        equal((answer.deleted, answer.live_edge_seq), (252, 0), "the answer")


@group
async def check_another_generation_is_refused(open_state: OpenState, clock: FakeClock) -> None:
    """Cut nothing when somebody else cut meanwhile."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2", "m3")
        equal((await cut(state, key, "m3", expected_generation=0)).generation, 1, "the generation")
        refusal = cut(state, key, "m2", expected_generation=0)
        await refused(StateConflictError, refusal, "a cut of another generation")
        equal(await stored_ids(state, key), ["m1", "m2"], "the rows")
        equal((await cut(state, key, "m2", expected_generation=1)).deleted, 1, "the count")


@group
async def check_the_same_key_gets_the_same_answer(open_state: OpenState, clock: FakeClock) -> None:
    """Answer a truncation that comes again from the record, as long as its key is kept."""
    key = new_key()
    ttl = timedelta(minutes=5)
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2")
        first = await cut(state, key, "m2", idempotency_key="k", dedupe_ttl=ttl)
        await append(state, key, "m2")
        again = await cut(state, key, "m2", idempotency_key="k", dedupe_ttl=ttl)
        equal(again, first, "the second answer")
        equal(await stored_ids(state, key), ["m1", "m2"], "the rows")
        clock.advance(seconds=ttl.total_seconds())
        later = await cut(state, key, "m2", idempotency_key="k", dedupe_ttl=ttl)
        equal((later.deleted, later.generation), (1, 2), "the answer once it is forgotten")


@group
async def check_an_unknown_message_is_not_found(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse what is not stored here, be it stored elsewhere or gone."""
    key, other = new_key(), new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", base="s1", policy=MANUAL)
        await append(state, other, "m2")
        await refused(NotFoundError, cut(state, key, "m2"), "a message of another conversation")
        narrowed = cut(state, key, "m1", session_id="s2")
        await refused(NotFoundError, narrowed, "a message of another session")
        await cut(state, key, "m1")
        await refused(NotFoundError, cut(state, key, "m1"), "a message that was cut")


@group
async def check_one_session_is_cut_and_the_others_stay(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Cut one session alone, however its messages mix with those of others."""
    key = new_key()
    async with open_state(clock) as state:
        for message_id, name in (("a1", "a"), ("b1", "b"), ("a2", "a"), ("b2", "b")):
            await append(state, key, message_id, base=name, policy=MANUAL)
        answer = await cut(state, key, "a1", session_id="a")
        equal((answer.deleted, answer.live_edge_seq), (2, 0), "the answer")
        equal(await stored_ids(state, key), ["b1", "b2"], "the rows")
        counts = [(await state.sessions.get(key, session_id=each)).message_count for each in "ab"]
        equal(counts, [0, 2], "the counts of messages")


@group
async def check_nothing_is_cut_while_a_turn_waits_or_runs(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse to cut under a turn that runs, or that waits for one, and cut nothing."""
    async with open_state(clock) as state:
        line = new_line(state)
        await append(state, line.key, "m1")
        grant = await line.start("a")
        await refused(ChatBusyError, cut(state, line.key, "m1"), "before", code="turn_in_progress")
        await line.record(grant)
        await refused(ChatBusyError, cut(state, line.key, "m1"), "a cut", code="turn_in_progress")
        await line.admit_all("b")
        following = (await line.finish(grant)).next
        await refused(ChatBusyError, cut(state, line.key, "m1"), "next", code="turn_in_progress")
        equal(await stored_ids(state, line.key), ["m1", "a", "re a"], "the rows")
        if following is not None:
            await line.run(following)
        equal((await cut(state, line.key, "m1")).deleted, 5, "the count at rest")


@group
async def check_a_dead_turn_does_not_hinder_a_cut(open_state: OpenState, clock: FakeClock) -> None:
    """Cut once the lease of the turn is over."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.record(grant)
        clock.advance(seconds=LEASE.total_seconds())
        equal((await cut(state, line.key, "a")).deleted, 1, "the count")


@group
async def check_messages_that_were_cut_may_be_sent_again(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Give up the claims of what was cut, and of a message whose answer was cut."""
    async with open_state(clock) as state:
        line = new_line(state)
        for name in ("a", "b", "c"):
            await line.run(await line.start(name, claim_id=name))
        await cut(state, line.key, "re b")
        verdicts = [(await line.admit(f"{n} again", claim_id=n)).verdict for n in "abc"]
        equal(verdicts, ["repeat", "accepted", "accepted"], "the verdicts")


@group.needs("options")
async def check_forever_keeps_what_was_cut(open_state: OpenState, clock: FakeClock) -> None:
    """Put rows aside with the retention `forever`: out of all, shown only to who asks for them."""
    key = new_key()
    async with open_state(clock, **FOREVER) as state:
        await append(state, key, "m1", "m2", "m3")
        await cut(state, key, "m2")
        await append(state, key, "m2")
        equal(await stored_ids(state, key), ["m1", "m2"], "the rows")
        found = await state.transcripts.get(key, message_ids=["m2", "m3"])
        equal(numbers_of(found), [4], "the row of the message that was sent again")
        page = await state.transcripts.page(key, request=PageRequest(include_superseded=True))
        shown = [(row.message.id, row.seq, row.is_superseded) for row in page.items]
        expected = [("m1", 1, False), ("m2", 2, True), ("m3", 3, True), ("m2", 4, False)]
        equal(shown, expected, "all rows")
        counts = await state.sessions.clear(key)
        equal(counts["rows"], 4, "the count of rows that clearing deletes")
        page = await state.transcripts.page(key, request=PageRequest(include_superseded=True))
        equal(ids_of(page.items), [], "what is left")


@group.needs("one_store")
async def check_what_one_cuts_is_gone_for_all(open_state: OpenState, clock: FakeClock) -> None:
    """Cut for every object at once, and let it go on behind the cut."""
    key = new_key()
    async with open_state(clock) as one, open_state(clock) as two:
        await append(two, key, "m1", "m2", "m3")
        await cut(one, key, "m2")
        equal(await stored_ids(two, key), ["m1"], "what the other one sees")
        equal(numbers_of(await append(two, key, "m2")), [4], "the next number of the other one")
