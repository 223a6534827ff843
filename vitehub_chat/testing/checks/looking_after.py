"""Looking after a store: facts, cleanup, retention, and the erasure of a person."""

from __future__ import annotations

import json
from typing import Any, Final

from vitehub_chat.errors import ChatBusyError, StateClosedError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.row_requests import TruncateRequest
from vitehub_chat.state.values import NewRow, PageRequest, SessionRequest
from vitehub_chat.testing.checks.expecting import equal, holds, refused
from vitehub_chat.testing.checks.lines import Line, new_line
from vitehub_chat.testing.checks.material import (
    AGENT,
    FOR_AN_HOUR,
    FOREVER,
    MANUAL,
    append,
    new_key,
    new_tenant,
    row,
    stored_ids,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("looking_after")

NOTHING: Final = {
    "rows": 0,
    "summaries": 0,
    "plans": 0,
    "values": 0,
    "entries": 0,
    "sessions": 0,
}


async def say(
    state: AgentState, key: ConversationKey, message_id: str, session_id: str, user_key: str
) -> None:
    """Store a message of a person in a session that belongs to them."""
    request = SessionRequest(conversation=key, policy=MANUAL, base=session_id, user_key=user_key)
    given = row(message_id)
    written = NewRow(message=given.message, author=user_key)
    await state.transcripts.append(request, rows=[written])


async def kinds_of(state: AgentState, tenant: str | None, user_key: str) -> list[str]:
    """Return the kinds of all that is exported of a person."""
    return sorted([each.kind async for each in state.admin.export_person(tenant, user_key)])


@group
async def check_facts_tell_what_is_stored(open_state: OpenState, clock: FakeClock) -> None:
    """Count the records of each table, and tell a version that is the newest."""
    async with open_state(clock) as state:
        before = await state.admin.info()
        await append(state, new_key(), "m1", "m2")
        after = await state.admin.info()
        grown = {name: after.counts[name] - count for name, count in before.counts.items()}
        expected = {"rows": 2, "sessions": 1, "conversations": 1}
        equal({name: n for name, n in grown.items() if n}, expected, "what was added")
        equal(after.schema_version, after.newest_version, "the version")
        equal(after.features, state.features, "the features")
        plan = await state.admin.migrate(dry_run=True)
        equal((plan.from_version, plan.to_version), (after.schema_version,) * 2, "the plan")


@group
async def check_a_healthy_store_has_no_problems(open_state: OpenState, clock: FakeClock) -> None:
    """Find nothing wrong with what was stored, cut, pruned and cleared."""
    async with open_state(clock) as state:
        line = new_line(state)
        await line.run(await line.start("a"))
        await append(state, line.key, "m3", "m4")
        await state.summaries.save_manual(line.key, session_id=None, text="so far")
        await state.transcripts.truncate(line.key, request=TruncateRequest(message_id="m4"))
        await state.transcripts.delete(line.key, message_id="m3")
        found = await state.admin.check_integrity()
        equal(found.problems, {}, "the problems")
        holds(found.rows >= 2, f"looked at {found.rows} rows")
        await state.sessions.clear(line.key, delete_session=True)
        equal((await state.admin.check_integrity()).problems, {}, "the problems afterwards")


@group.needs("options", "one_store")
async def check_cleanup_removes_what_has_expired_at_once(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Remove expired rows however many there are, and leave all others."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1")
        before = (await state.admin.info()).counts["rows"]
    async with open_state(clock, **FOR_AN_HOUR) as state:
        await append(state, key, *(f"n{number}" for number in range(450)))
        clock.advance(hours=2)
        await state.admin.cleanup()
        left = (await state.admin.info()).counts["rows"]
        holds(left <= before, f"left {left} rows of {before}")
        equal(set((await state.admin.cleanup()).values()), {0}, "what the second time removes")
        equal(await stored_ids(state, key), ["m1"], "the rows")


@group.needs("options", "one_store")
async def check_older_rows_get_the_expiry_when_asked(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Apply a retention to rows that have none, counted from when they were recorded."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1")
    clock.advance(minutes=30)
    async with open_state(clock, **FOR_AN_HOUR) as state:
        await append(state, key, "m2")
        done = await state.admin.migrate(apply_retention=True)
        holds(done.rows >= 1, f"changed {done.rows} rows")
        clock.advance(minutes=30)
        equal(await stored_ids(state, key), ["m2"], "the rows after an hour")
    async with open_state(clock) as state:
        await state.admin.migrate(apply_retention=True)
        clock.advance(hours=9)
        equal(await stored_ids(state, key), ["m2"], "the rows without a retention")


@group
async def check_a_person_is_erased_everywhere(open_state: OpenState, clock: FakeClock) -> None:
    """Erase sessions, messages in those of others, and what waits; then there is nothing more."""
    tenant = new_tenant()
    own = ConversationKey(tenant, AGENT, "portal", "own")
    shared = ConversationKey(tenant, AGENT, "portal", "shared")
    elsewhere = ConversationKey(new_tenant(), AGENT, "portal", "own")
    async with open_state(clock) as state:
        await say(state, own, "a1", "s1", "ann")
        await say(state, own, "a2", "s2", "ann")
        await state.summaries.save_manual(own, session_id="s1", text="of ann")
        await say(state, shared, "b1", "s3", "bob")
        await say(state, shared, "a3", "s3", "ann")
        await say(state, elsewhere, "a4", "s1", "ann")
        line = await waiting_line(state, tenant, "ann")
        receipt = dict(await state.admin.erase_person(tenant, "ann"))
        equal(receipt, {**NOTHING, "rows": 3, "summaries": 1, "sessions": 2, "entries": 1}, "it")
        equal(await stored_ids(state, own), [], "the rows of the person's conversation")
        equal(await stored_ids(state, shared), ["b1"], "the rows of the other's")
        equal(await stored_ids(state, elsewhere), ["a4"], "the rows of another tenant")
        equal(await line.states("w"), ["unknown"], "how far the waiting message is")
        again = dict(await state.admin.erase_person(tenant, "ann"))
        equal(again, NOTHING, "the second receipt")
        info = await state.sessions.get(shared, session_id="s3")
        equal((info.message_count, info.user_key), (1, "bob"), "the session of the other")
        equal(await kinds_of(state, tenant, "ann"), [], "what is exported afterwards")


async def waiting_line(state: AgentState, tenant: str, user_key: str) -> Line:
    """Return a line in which a message of a person waits behind a running turn."""
    line = new_line(state)
    await line.start("running")
    key = ConversationKey(tenant, AGENT, "portal", "waiting")
    payload = json.dumps({"user_key": user_key})
    await line.admit("w", conversation=key, payload=payload, owner=None)
    return line


@group
async def check_what_is_exported_is_what_is_erased(open_state: OpenState, clock: FakeClock) -> None:
    """Export sessions, messages, summaries, and messages in the sessions of others."""
    tenant = new_tenant()
    own = ConversationKey(tenant, AGENT, "portal", "own")
    shared = ConversationKey(tenant, AGENT, "portal", "shared")
    async with open_state(clock) as state:
        for number in range(3):
            await say(state, own, f"a{number}", "s1", "ann")
        await append_many(state, own, "s1", 250)
        await state.summaries.save_manual(own, session_id="s1", text="of ann")
        await say(state, shared, "b1", "s3", "bob")
        await say(state, shared, "x1", "s3", "ann")
        found = [each async for each in state.admin.export_person(tenant, "ann")]
        ids = [each.fields["message"]["id"] for each in found if each.kind == "message"]
        expected = [*(f"a{n}" for n in range(3)), *(f"m{n}" for n in range(250)), "x1"]
        equal(ids, expected, "the messages")
        others = sorted(each.kind for each in found if each.kind != "message")
        equal(others, ["session", "summary"], "everything else")
        json.dumps([each.to_json() for each in found])
        equal(await kinds_of(state, tenant, "nobody"), [], "what there is of a stranger")


async def append_many(state: AgentState, key: ConversationKey, session_id: str, count: int) -> None:
    """Store many answers in a session."""
    request = SessionRequest(conversation=key, policy=MANUAL, base=session_id)
    given = [row(f"m{number}", role="assistant") for number in range(count)]
    await state.transcripts.append(request, rows=given)


@group.needs("options")
async def check_erasing_reaches_what_forever_keeps(open_state: OpenState, clock: FakeClock) -> None:
    """Erase rows that were cut off and kept, in the person's sessions and in those of others."""
    tenant = new_tenant()
    shared = ConversationKey(tenant, AGENT, "portal", "shared")
    async with open_state(clock, **FOREVER) as state:
        await say(state, shared, "b1", "s3", "bob")
        await say(state, shared, "a1", "s3", "ann")
        await state.transcripts.truncate(shared, request=TruncateRequest(message_id="a1"))
        await say(state, shared, "a2", "s3", "ann")
        receipt = dict(await state.admin.erase_person(tenant, "ann"))
        equal(receipt, {**NOTHING, "rows": 2}, "the receipt")
        asked = PageRequest(include_superseded=True)
        page = await state.transcripts.page(shared, request=asked)
        equal([each.message.id for each in page.items], ["b1"], "the rows")


@group
async def check_a_turn_that_runs_is_not_erased(open_state: OpenState, clock: FakeClock) -> None:
    """Erase everything but the session of a running turn, say so, and finish it afterwards."""
    tenant = new_tenant()
    key = ConversationKey(tenant, AGENT, "portal", "one")
    other = ConversationKey(tenant, AGENT, "portal", "two")
    async with open_state(clock) as state:
        await say(state, other, "a2", "s2", "ann")
        line = Line(state=state, policy=new_line(state).policy, key=key)
        grant = await line.start("a", wanted_id="s1")
        request = SessionRequest(conversation=key, policy=MANUAL, base="s1", user_key="ann")
        said = NewRow(message=row("a").message, author="ann")
        await state.turns.record(grant.ticket_id, rows=[said], session=request)
        erasing = state.admin.erase_person(tenant, "ann")
        await refused(ChatBusyError, erasing, "erasing", code="turn_in_progress")
        equal(await stored_ids(state, other), [], "the rows of the session at rest")
        equal(await stored_ids(state, key), ["a"], "the rows of the running turn")
        await line.finish(grant)
        receipt = dict(await state.admin.erase_person(tenant, "ann"))
        equal(receipt, {**NOTHING, "rows": 2, "entries": 1, "sessions": 1}, "the receipt")


@group
async def check_a_closed_store_is_not_looked_after(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse all but a dry run of a migration once the store is closed."""
    async with open_state(clock) as state:
        pass
    calls: dict[str, Any] = {
        "info": state.admin.info(),
        "cleanup": state.admin.cleanup(),
        "integrity": state.admin.check_integrity(),
        "migration": state.admin.migrate(),
        "erasure": state.admin.erase_person(None, "ann"),
    }
    for name, call in calls.items():
        await refused(StateClosedError, call, name)
