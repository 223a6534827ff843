"""The index of turns, and whether a turn is under way."""

from __future__ import annotations

from typing import Final

from vitehub_chat.errors import CursorError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import TurnPage
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.row_requests import TurnsRequest
from vitehub_chat.state.values import NewRow, SessionRequest
from vitehub_chat.testing.checks.expecting import equal, no, refused, yes
from vitehub_chat.testing.checks.lines import LEASE, new_line
from vitehub_chat.testing.checks.material import MANUAL, append, new_key, row
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("turn_index")


async def index(state: AgentState, key: ConversationKey, **request: object) -> TurnPage:
    """Return some user messages."""
    asked = TurnsRequest(**request)  # type: ignore[arg-type]
    return await state.transcripts.turns(key, request=asked)


@group
async def check_one_light_row_per_user_message(open_state: OpenState, clock: FakeClock) -> None:
    """Return number, id, place, time, the beginning of the text, and whether it was answered."""
    key = new_key()
    said = [
        row("s1", "rules", role="system"),
        row("u1", "  What\n\tis  " + "x" * 90, created_at=clock.now()),
        row("a1", "that", role="assistant"),
        row("u2", "and?"),
        row("a2", "", role="assistant", status="error", is_shown=False),
        row("u3", "😀" * 90),
    ]
    async with open_state(clock) as state:
        await state.transcripts.append(SessionRequest(conversation=key), rows=said)
        page = await index(state, key)
        equal([each.message_id for each in page.items], ["u1", "u2", "u3"], "the messages")
        equal([each.turn_no for each in page.items], [1, 2, 3], "the numbers of the turns")
        equal([each.seq for each in page.items], [2, 4, 6], "the places")
        equal([each.has_reply for each in page.items], [True, False, False], "the answers")
        equal(page.items[0].preview, "What is " + "x" * 72, "the first preview")
        equal(page.items[2].preview, "😀" * 80, "the third preview")
        equal({each.created_at for each in page.items}, {clock.now()}, "the times")
        equal(page.next_cursor, None, "the cursor at the end")


@group
async def check_a_walk_through_the_index_meets_every_turn_once(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Lead on from page to page, also over messages that are no turns."""
    key = new_key()
    said: list[NewRow] = []
    for number in range(7):
        said.append(row(f"u{number}"))
        said.extend(row(f"a{number} {n}", role="assistant") for n in range(number * 20))
    async with open_state(clock) as state:
        await state.transcripts.append(SessionRequest(conversation=key), rows=said)
        found: list[tuple[str, bool]] = []
        cursor: str | None = None
        for _ in range(9):
            page = await index(state, key, limit=2, cursor=cursor)
            found.extend((each.message_id, each.has_reply) for each in page.items)
            cursor = page.next_cursor
            if cursor is None:
                break
        equal(found, [(f"u{number}", number > 0) for number in range(7)], "the turns")


@group
async def check_an_index_is_of_one_session(open_state: OpenState, clock: FakeClock) -> None:
    """Narrow to a session, and refuse a cursor of another index."""
    key = new_key()
    async with open_state(clock) as state:
        for message_id, name in (("a1", "a"), ("b1", "b"), ("a2", "a")):
            await append(state, key, message_id, base=name, policy=MANUAL)
        page = await index(state, key, session_id="a", limit=1)
        equal([each.message_id for each in page.items], ["a1"], "the first page")
        rest = await index(state, key, session_id="a", cursor=page.next_cursor)
        equal([(t.message_id, t.turn_no) for t in rest.items], [("a2", 2)], "the second page")
        equal((await index(state, key, session_id="c")).items, (), "an unknown session")
        equal((await index(state, new_key())).items, (), "an unknown conversation")
        foreign = index(state, key, cursor=page.next_cursor)
        await refused(CursorError, foreign, "a cursor of another index")


@group
async def check_a_turn_is_under_way_while_it_waits_or_runs(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Tell whether a turn waits or runs, and not of one that is over or dead."""
    async with open_state(clock) as state:
        line = new_line(state)

        async def running(session_id: str | None = None) -> bool:
            return await state.turns.running(line.key, session_id=session_id)

        no(await running(), "before")
        grant = await line.start("a", wanted_id="s1")
        yes(await running(), "granted")
        yes(await running("s1"), "granted, asked for its session")
        no(await running("s2"), "granted, asked for another session")
        request = SessionRequest(conversation=line.key, policy=MANUAL, base="s1")
        await state.turns.record(grant.ticket_id, rows=[row("a")], session=request)
        yes(await running("s1"), "recorded")
        no(await running("s2"), "recorded, asked for another session")
        await line.admit("b", wanted_id="s2")
        yes(await running("s2"), "waiting")
        following = (await line.finish(grant)).next
        no(await running("s1"), "finished")
        yes(await running("s2"), "granted next")
        if following is not None:
            clock.advance(seconds=LEASE.total_seconds())
        no(await running(), "dead")


@group
async def check_a_turn_of_another_thread_is_under_way_in_its_session(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Find turns that arrived in another conversation and run in a session of this one."""
    key = new_key()
    request = SessionRequest(conversation=key, policy=MANUAL, base="s1")
    async with open_state(clock) as state:
        await state.transcripts.append(request, rows=[row("m1")])
        line = new_line(state)
        elsewhere = ConversationKey(key.tenant, key.agent, key.channel, "t2")
        grant = await line.start("a", conversation=elsewhere, wanted_id="s1")
        again = SessionRequest(conversation=elsewhere, policy=MANUAL, base="s1")
        await state.turns.record(grant.ticket_id, rows=[row("a")], session=again)
        yes(await state.turns.running(key), "asked for the conversation with the rows")
        yes(await state.turns.running(key, session_id="s1"), "asked for the session")
        await line.finish(grant)
        no(await state.turns.running(key), "afterwards")
