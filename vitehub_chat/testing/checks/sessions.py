"""Sessions: where conversations start and end, and lists of them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

import attrs

from vitehub_chat.errors import CursorError, NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.expecting import equal, present, refused
from vitehub_chat.testing.checks.lines import MOMENT
from vitehub_chat.testing.checks.material import (
    AGENT,
    MANUAL,
    append,
    new_key,
    new_tenant,
    row,
    stored,
    stored_ids,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("sessions")

TIMEOUT: Final = timedelta(minutes=30)
IDLE: Final = SessionPolicy(strategy="idle-timeout", idle_timeout=TIMEOUT)
HYBRID: Final = SessionPolicy(strategy="hybrid", idle_timeout=TIMEOUT)


@group
async def check_rows_without_policy_form_one_unnamed_session(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Keep everything in one session without a name when sessions are off."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1")
        clock.advance(days=365)
        await append(state, key, "m2", base="ignored")
        found = await state.sessions.list(key.tenant, agent=None)
        equal([(s.session_id, s.message_count) for s in found.items], [(None, 2)], "the sessions")


@group
async def check_silence_that_equals_the_timeout_ends_nothing(
    open_state: OpenState, clock: FakeClock
) -> None:
    """End a session by silence that is strictly longer than the timeout."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", policy=IDLE, begins_with="m1")
        clock.advance(seconds=TIMEOUT.total_seconds())
        await append(state, key, "m2", policy=IDLE, begins_with="m2")
        clock.advance(seconds=(TIMEOUT + MOMENT).total_seconds())
        await append(state, key, "m3", policy=IDLE, begins_with="m3")
        found = [(each.message.id, each.session_id) for each in await stored(state, key)]
        expected = [("m1", "idle:m1"), ("m2", "idle:m1"), ("m3", "idle:m3")]
        equal(found, expected, "the sessions of the rows")


@group
async def check_a_named_session_spans_threads_of_its_channel(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Find a named session again from another thread of the channel, and not from another one."""
    tenant = new_tenant()
    keys = [
        ConversationKey(tenant, AGENT, *place)
        for place in (("c1", "t1"), ("c1", "t2"), ("c2", "t1"))
    ]
    async with open_state(clock) as state:
        for number, key in enumerate(keys):
            await append(state, key, f"m{number}", base="s1", policy=HYBRID)
        found = [await stored_ids(state, key) for key in keys]
        equal(found, [["m0", "m1"], [], ["m2"]], "the rows of the places")


@group
async def check_a_new_session_gets_a_name_of_its_own(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Begin a session whatever the times say, under a name that no other one has."""
    key = new_key()
    async with open_state(clock) as state:
        for name in ("m1", "m2", "m3"):
            await append(
                state, key, name, base="s1", policy=HYBRID, starts_new=True, begins_with="m1"
            )
        found = [each.session_id for each in await stored(state, key)]
        equal((len(set(found)), found[0]), (3, "s1"), "the number of sessions, and the first")


@group
async def check_concurrent_first_messages_start_one_session(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Start one session when many messages arrive first."""
    key = new_key()
    async with open_state(clock) as state:
        calls = [append(state, key, f"m{n}", base="s1", policy=MANUAL) for n in range(10)]
        await asyncio.gather(*calls)
        found = await state.sessions.list(key.tenant, agent=None)
        equal([(s.session_id, s.message_count) for s in found.items], [("s1", 10)], "the sessions")


@group
async def check_a_session_knows_who_began_it(open_state: OpenState, clock: FakeClock) -> None:
    """Return what a session was begun with."""
    key, begun = new_key(), clock.now()
    async with open_state(clock) as state:
        about = {"base": "s1", "policy": MANUAL, "chat_id": "c1", "user_key": "portal:u1"}
        await append(state, key, "m1", **about)
        clock.advance(minutes=5)
        await append(state, key, "m2", base="s1", policy=MANUAL, chat_id="c2", user_key="u2")
        info = await state.sessions.get(key, session_id="s1")
        equal((info.id, info.user_key, info.conversation), ("c1", "portal:u1", key), "its facts")
        equal((info.started_at, info.last_message_at), (begun, clock.now()), "its times")
        listed = await state.sessions.list(key.tenant, agent=AGENT)
        equal(listed.items, (info,), "the list")


@group
async def check_only_messages_move_activity_and_only_forward(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Move the time of the last message by new messages alone, and never back."""
    key, at = new_key(), clock.now()
    async with open_state(clock) as state:
        await append(state, key, "m1")
        clock.advance(hours=1)
        await append(state, key, "m1")
        await state.summaries.save_manual(key, session_id=None, text="so far")
        await state.sessions.get(key, session_id=None)
        equal((await state.sessions.get(key, session_id=None)).last_message_at, at, "activity")
        clock.advance(hours=-2)
        await append(state, key, "m2")
        equal((await state.sessions.get(key, session_id=None)).last_message_at, at, "activity")
        old = row("m3", created_at=at - timedelta(days=9))
        await state.transcripts.append(SessionRequest(conversation=key), rows=[old])
        equal((await state.sessions.get(key, session_id=None)).last_message_at, at, "activity")


@group
async def check_lists_begin_with_the_newest_activity(
    open_state: OpenState, clock: FakeClock
) -> None:
    """List the sessions by their newest message, of equal ones the newest session first."""
    tenant = new_tenant()
    async with open_state(clock) as state:
        await _begin(state, tenant, "t1", "t2", "t3")
        clock.advance(seconds=1)
        await _begin(state, tenant, "t2")
        equal(await _threads(state, tenant), ["t2", "t3", "t1"], "the list")


@group
async def check_walking_a_list_meets_every_session_once(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Lead through all sessions by cursors, those of one moment too, and end with none."""
    tenant = new_tenant()
    async with open_state(clock) as state:
        for number in range(11):
            await _begin(state, tenant, f"t{number}")
            clock.advance(seconds=number // 4)
        everything = await _threads(state, tenant, limit=100)
        equal(set(everything), {f"t{number}" for number in range(11)}, "all sessions")
        for limit in (1, 3, 10, 11):
            found, page = [], await state.sessions.list(tenant, agent=None, limit=limit)
            while True:
                found += [each.conversation.thread for each in page.items]
                if page.next_cursor is None or len(found) > 11:
                    break
                page = await state.sessions.list(
                    tenant, agent=None, limit=limit, cursor=page.next_cursor
                )
            equal(found, everything, f"the sessions in pages of {limit}")


@group
async def check_lists_are_narrowed_by_all_conditions(
    open_state: OpenState, clock: FakeClock
) -> None:
    """List the sessions of an agent, an owner, a conversation, or since a time; and of all."""
    tenant = new_tenant()
    async with open_state(clock) as state:
        for number in range(8):
            key = ConversationKey(tenant, f"a{number % 2}", None, f"t{number}")
            await append(state, key, "m1", user_key=f"u{number // 4}")
            clock.advance(minutes=1)
        since = clock.now() - timedelta(minutes=3)
        for narrowing, expected in (
            ({"agent": "a0"}, "6420"),
            ({"agent": None, "user_key": "u0"}, "3210"),
            ({"agent": "a1", "user_key": "u1"}, "75"),
            ({"agent": None, "updated_since": since}, "765"),
            ({"agent": "a1", "updated_since": since + MOMENT}, "7"),
            ({"agent": None, "conversation": ConversationKey(tenant, "a0", None, "t2")}, "2"),
            ({"agent": "a1", "conversation": ConversationKey(tenant, "a0", None, "t2")}, ""),
            ({"agent": "a"}, ""),
        ):
            found = await _threads(state, tenant, **narrowing)
            equal(found, [f"t{each}" for each in expected], f"the list of {narrowing}")


@group
async def check_foreign_list_cursors_are_refused(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse the cursor of another tenant's or owner's list, and garbage."""
    tenants = [new_tenant(), new_tenant()]
    async with open_state(clock) as state:
        for tenant in tenants:
            await _begin(state, tenant, "t1", "t2")
        theirs = await state.sessions.list(tenants[0], agent=None, limit=1)
        cursor = present(theirs.next_cursor, "the cursor")
        for what, call in {
            "another tenant": state.sessions.list(tenants[1], agent=None, cursor=cursor),
            "an owner": state.sessions.list(tenants[0], agent=None, user_key="u", cursor=cursor),
            "garbage": state.sessions.list(tenants[0], agent=None, cursor="garbage"),
        }.items():
            await refused(CursorError, call, f"the cursor in the list of {what}")


@group
async def check_a_made_name_is_an_id(open_state: OpenState, clock: FakeClock) -> None:
    """Make names of at most 512 characters, however long the ids are that they are made of."""
    key = new_key()
    base, first, second = "b" * 512, "m" * 512, "n" * 512
    async with open_state(clock) as state:
        names = []
        for message_id in (first, second, first + "'"):
            request = SessionRequest(
                conversation=key,
                policy=HYBRID,
                base=base,
                starts_new=True,
                begins_with=message_id,
            )
            await state.transcripts.append(request, rows=[row(message_id[:500])])
            names.append((await state.sessions.list(key.tenant, agent=None)).items[0].session_id)
            clock.advance(seconds=1)
        equal(names[0], base, "the first name")
        equal([len(each or "") for each in names], [512] * 3, "the lengths")
        equal(len(set(names)), 3, "the count of different names")


@group
async def check_renaming_moves_nothing(open_state: OpenState, clock: FakeClock) -> None:
    """Change the title alone: activity, order and counts stay."""
    tenant = new_tenant()
    key = ConversationKey(tenant, AGENT, "portal", "t1")
    async with open_state(clock) as state:
        await _begin(state, tenant, "t1", "t2")
        before = await state.sessions.get(key, session_id=None)
        clock.advance(hours=1)
        renamed = await state.sessions.rename(key, session_id=None, title="Taxes \0 😀")
        equal(renamed, attrs.evolve(before, title="Taxes \0 😀"), "the session")
        equal(await state.sessions.get(key, session_id=None), renamed, "the stored session")
        equal(await _threads(state, tenant), ["t2", "t1"], "the list")
        nameless = await state.sessions.rename(key, session_id=None, title=None)
        equal(nameless.title, None, "the title that was taken away")
        missing = state.sessions.rename(key, session_id="s", title="x")
        await refused(NotFoundError, missing, "renaming what is not there")


async def _begin(state: AgentState, tenant: str, *threads: str) -> None:
    for thread in threads:
        key = ConversationKey(tenant, AGENT, "portal", thread)
        count = len(await stored(state, key))
        await append(state, key, f"m{count}")


async def _threads(
    state: AgentState, tenant: str, agent: str | None = None, **narrowing: Any
) -> list[str | None]:
    page = await state.sessions.list(tenant, agent=agent, **narrowing)
    return [each.conversation.thread for each in page.items]
