"""Transcripts: messages are stored as they are, in the order of their numbers."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Final

import attrs

from vitehub_chat.errors import InputError
from vitehub_chat.state.values import NewRow, SessionRequest
from vitehub_chat.testing.checks.expecting import equal, holds, refused
from vitehub_chat.testing.checks.material import (
    MANUAL,
    append,
    ids_of,
    new_key,
    numbered,
    numbers_of,
    row,
    stored,
    stored_ids,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("transcripts")


@group
async def check_numbers_rise_from_one(open_state: OpenState, clock: FakeClock) -> None:
    """Give rows numbers from 1 on, in the order given, call after call."""
    key = new_key()
    async with open_state(clock) as state:
        first = await append(state, key, "m2", "m1")
        second = await append(state, key, "m3")
        equal(numbers_of([*first, *second]), [1, 2, 3], "the numbers that were returned")
        equal(ids_of([*first, *second]), ["m2", "m1", "m3"], "the ids that were returned")
        equal(await stored(state, key), [*first, *second], "what is stored")


@group
async def check_numbers_are_of_one_conversation(open_state: OpenState, clock: FakeClock) -> None:
    """Give every conversation numbers of its own."""
    keys = [new_key(), new_key()]
    async with open_state(clock) as state:
        for names in (("m1", "m2"), ("m3", "m4")):
            for key in keys:
                await append(state, key, *names)
        for key in keys:
            equal(numbers_of(await stored(state, key)), [1, 2, 3, 4], "the numbers")


@group
async def check_time_is_not_order(open_state: OpenState, clock: FakeClock) -> None:
    """Keep the order of arrival, whatever messages and clocks say of the time."""
    key, now = new_key(), clock.now()
    async with open_state(clock) as state:
        for number in range(3):
            at = now.replace(year=now.year - number)
            await state.transcripts.append(
                SessionRequest(conversation=key), rows=[row(f"m{number}", created_at=at)]
            )
            clock.advance(hours=-1)
        equal(await stored_ids(state, key), ["m0", "m1", "m2"], "the order of the rows")


@group
async def check_a_batch_is_stored_whole_or_not(open_state: OpenState, clock: FakeClock) -> None:
    """Store nothing of a batch with a message that cannot be stored."""
    key = new_key()
    bad = row("m2", metadata={"when": datetime(2026, 1, 1, tzinfo=UTC)})
    async with open_state(clock) as state:
        batch = [row("m1"), bad, row("m3")]
        call = state.transcripts.append(SessionRequest(conversation=key), rows=batch)
        error = await refused(InputError, call, "metadata that is not JSON")
        holds("when" in str(error), "the error does not name the metadata key")
        equal(await stored_ids(state, key), [], "what is stored")
        equal((await state.sessions.list(key.tenant, agent=None)).items, (), "the sessions")
        await append(state, key, "m1")
        equal(await stored_ids(state, key), ["m1"], "what is stored afterwards")


@group
async def check_nothing_is_stored_for_an_empty_batch(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Do nothing for an empty sequence."""
    key = new_key()
    async with open_state(clock) as state:
        equal(list(await append(state, key)), [], "the rows")
        equal((await state.sessions.list(key.tenant, agent=None)).items, (), "the sessions")


@group
async def check_the_same_id_replaces_its_row(open_state: OpenState, clock: FakeClock) -> None:
    """Replace the row of a message id in place: its number and times stay."""
    key = new_key()
    request = SessionRequest(conversation=key)
    async with open_state(clock) as state:
        created = clock.now()
        first = row("m1", "old", metadata={"old": 1}, created_at=created)
        before = await state.transcripts.append(request, rows=[first, row("m2")])
        clock.advance(hours=1)
        newer = row("m1", "new", role="assistant", created_at=clock.now(), is_shown=False)
        after = await state.transcripts.append(request, rows=[newer])
        message = attrs.evolve(newer.message, created_at=created)
        # Which turn a replaced answer belongs to is not a question of its place.
        changed = attrs.evolve(before[0], message=message, is_shown=False, turn_no=after[0].turn_no)
        equal(list(after), [changed], "the row that was returned")
        equal(await stored(state, key), [changed, before[1]], "what is stored")
        info = await state.sessions.get(key, session_id=None)
        equal(info.message_count, 2, "the count of messages")


@group
async def check_the_same_id_twice_in_a_batch_is_one_row(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Store a message id once when a batch has it twice, the last one counts."""
    key = new_key()
    batch = [row("m1", "first"), row("m2"), row("m1", "last")]
    async with open_state(clock) as state:
        await state.transcripts.append(SessionRequest(conversation=key), rows=batch)
        found = [
            (each.seq, each.message.id, each.message.text) for each in await stored(state, key)
        ]
        equal(found, [(1, "m1", "last"), (2, "m2", "hi")], "the rows")


@group
async def check_get_returns_rows_by_number(open_state: OpenState, clock: FakeClock) -> None:
    """Return the rows of some ids by number, each once, without those that are unknown."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2", "m3")
        wanted = ["m3", "m0", "m1", "m3"]
        found = await state.transcripts.get(key, message_ids=wanted)
        equal(ids_of(found), ["m1", "m3"], "the rows")
        equal(list(await state.transcripts.get(key, message_ids=[])), [], "no rows")


@group
async def check_turns_are_counted_by_user_messages(open_state: OpenState, clock: FakeClock) -> None:
    """Count turns by the user messages of their session."""
    key = new_key()
    roles = ("assistant", "user", "assistant", "user", "user", "assistant")
    batch = [row(f"m{number}", role=role) for number, role in enumerate(roles)]
    async with open_state(clock) as state:
        await state.transcripts.append(SessionRequest(conversation=key), rows=batch)
        found = await stored(state, key)
        equal([each.turn_no for each in found], [0, 1, 1, 2, 3, 3], "the numbers of the turns")


@group
async def check_concurrent_appends_are_numbered_without_gap(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Give what fifty tasks store at once consecutive numbers, those of a batch in a row."""
    key = new_key()
    async with open_state(clock) as state:
        batches = [[f"{number} a", f"{number} b"] for number in range(50)]
        answers = await asyncio.gather(*(append(state, key, *batch) for batch in batches))
        found = await stored(state, key)
        equal(numbers_of(found), list(range(1, 101)), "the numbers")
        equal(len(set(ids_of(found))), 100, "the number of ids")
        for answer in answers:
            equal(answer[1].seq, answer[0].seq + 1, "the number after the first of a batch")


@group
async def check_concurrent_appends_of_one_id_are_one_row(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Store a message once that ten tasks store at once."""
    key = new_key()
    async with open_state(clock) as state:
        await asyncio.gather(*(append(state, key, "m1") for _ in range(10)))
        found = [(each.seq, each.message.id) for each in await stored(state, key)]
        equal(found, [(1, "m1")], "the rows")
        sessions = await state.sessions.list(key.tenant, agent=None)
        equal([each.message_count for each in sessions.items], [1], "the count of messages")


@group.needs("one_store")
async def check_two_openers_number_one_conversation(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Give what two objects store at once consecutive numbers, and show each the other's."""
    key = new_key()
    async with open_state(clock) as one, open_state(clock) as two:
        calls = [append(one, key, f"one {n}") for n in range(20)]
        calls += [append(two, key, f"two {n}") for n in range(20)]
        await asyncio.gather(*calls)
        found = await stored(one, key)
        equal(numbers_of(found), list(range(1, 41)), "the numbers")
        equal(len(set(ids_of(found))), 40, "the number of ids")
        equal(await stored(two, key), found, "what the other one sees")


@group
async def check_export_yields_every_row(open_state: OpenState, clock: FakeClock) -> None:
    """Yield every row once and in order, in batches of bounded size."""
    key, count = new_key(), 450
    async with open_state(clock) as state:
        request = SessionRequest(conversation=key)
        await state.transcripts.append(request, rows=numbered(count))
        sizes = [len(batch.rows) async for batch in state.transcripts.export(key)]
        holds(max(sizes) < count, "the export is one batch")
        equal(numbers_of(await stored(state, key)), list(range(1, count + 1)), "the numbers")


@group
async def check_export_beside_appends_yields_what_was_there(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Yield every row that was there at the start once, while others are stored."""
    key = new_key()
    async with open_state(clock) as state:
        request = SessionRequest(conversation=key)
        await state.transcripts.append(request, rows=numbered(450))
        found: list[str] = []
        async for batch in state.transcripts.export(key):
            found += ids_of(batch.rows)
            await append(state, key, f"late {len(found)}")
        equal(found[:450], ids_of_new(numbered(450)), "the rows that were there")
        equal(len(found), len(set(found)), "the number of different rows")


@group
async def check_export_narrows_to_a_session(open_state: OpenState, clock: FakeClock) -> None:
    """Yield the rows of one session alone."""
    key = new_key()
    async with open_state(clock) as state:
        for number in range(6):
            base = f"s{number % 2}"
            await append(state, key, f"m{number}", base=base, policy=MANUAL)
        equal(await stored_ids(state, key, "s1"), ["m1", "m3", "m5"], "the rows of a session")


def ids_of_new(given: list[NewRow]) -> list[str]:
    """Return the message ids of rows that are to be stored."""
    return [each.message.id or "" for each in given]
