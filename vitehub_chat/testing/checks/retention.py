"""Retention: how long rows live."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import PageRequest, SessionRequest, WindowRequest
from vitehub_chat.testing.checks.expecting import equal
from vitehub_chat.testing.checks.lines import DEDUPE_TTL, MOMENT, new_line
from vitehub_chat.testing.checks.material import (
    FOR_AN_HOUR,
    FOREVER,
    append,
    ids_of,
    new_key,
    numbered,
    numbers_of,
    stored_ids,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("retention")

HOUR: Final = timedelta(hours=1)
SELDOM_MS: Final = 2**31 - 1


@group
async def check_without_retention_rows_stay(open_state: OpenState, clock: FakeClock) -> None:
    """Keep rows until they are deleted when nothing else is said."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1")
        clock.advance(days=36500)
        await append(state, key, "m2")
        equal(await stored_ids(state, key), ["m1", "m2"], "the rows")


@group.needs("options")
async def check_a_row_is_gone_exactly_in_time(open_state: OpenState, clock: FakeClock) -> None:
    """Show a row until its time is over and not at that moment, in every kind of read."""
    key = new_key()
    async with open_state(clock, **FOR_AN_HOUR) as state:
        await append(state, key, "m1")
        clock.advance(seconds=1)
        await append(state, key, "m2")
        clock.advance(seconds=(HOUR - timedelta(seconds=1) - MOMENT).total_seconds())
        equal(await _every_read(state, key), [["m1", "m2"]] * 4, "the rows just before")
        clock.advance(microseconds=1)
        equal(await _every_read(state, key), [["m2"]] * 4, "the rows at that moment")
        clock.advance(seconds=1)
        equal(await _every_read(state, key), [[]] * 4, "the rows a second later")


@group.needs("options")
async def check_replacing_a_row_extends_nothing(open_state: OpenState, clock: FakeClock) -> None:
    """Count the time of a row from when it was recorded, also when it is replaced."""
    key = new_key()
    async with open_state(clock, **FOR_AN_HOUR) as state:
        await append(state, key, "m1")
        clock.advance(minutes=30)
        await append(state, key, "m1")
        clock.advance(minutes=30)
        equal(await stored_ids(state, key), [], "the rows")


@group.needs("options")
async def check_an_expired_id_is_free(open_state: OpenState, clock: FakeClock) -> None:
    """Store a message under a new number whose id an expired row has."""
    key = new_key()
    async with open_state(clock, **FOR_AN_HOUR) as state:
        await append(state, key, "m1", "m2")
        clock.advance(hours=1)
        equal(numbers_of(await append(state, key, "m1")), [3], "its number")
        equal(await _every_read(state, key), [["m1"]] * 4, "the rows")


@group.needs("options")
async def check_many_rows_expire_at_once(open_state: OpenState, clock: FakeClock) -> None:
    """Show none of many expired rows, long before they are all removed."""
    key = new_key()
    async with open_state(clock, **FOR_AN_HOUR) as state:
        request = SessionRequest(conversation=key)
        await state.transcripts.append(request, rows=numbered(900))
        clock.advance(hours=1)
        equal(await _every_read(state, key), [[]] * 4, "the rows")
        await append(state, key, "new")
        equal(await _every_read(state, key), [["new"]] * 4, "the rows")


@group.needs("options")
async def check_forever_keeps_rows(open_state: OpenState, clock: FakeClock) -> None:
    """Keep rows that are recorded under `forever`."""
    key = new_key()
    async with open_state(clock, **FOREVER) as state:
        await append(state, key, "m1")
        clock.advance(days=36500)
        await append(state, key, "m2")
        equal(await _every_read(state, key), [["m1", "m2"]] * 4, "the rows")


@group.needs("options")
async def check_forever_is_for_rows_alone(open_state: OpenState, clock: FakeClock) -> None:
    """Forget claims and ends in time under `forever`, whatever the names say."""
    async with open_state(clock, **FOREVER) as state:
        line = new_line(state)
        name = "transcripts forever"
        await line.run(await line.start(name, claim_id="transcripts"))
        clock.advance(seconds=DEDUPE_TTL.total_seconds() + 3600)
        await line.run(await line.start("b", claim_id="transcripts"))
        equal(await line.states(name), ["unknown"], "how far the old message is")


@group.needs("options", "one_store")
async def check_forever_rescues_what_is_still_there(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Keep every row that is there when the store is opened with `forever`, expired ones too."""
    key = new_key()
    async with open_state(clock, **FOR_AN_HOUR, cleanup_interval_ms=SELDOM_MS) as state:
        await append(state, key, "m1", "m2")
        clock.advance(hours=1)
        async with open_state(clock, **FOREVER) as keeper:
            equal(await _every_read(keeper, key), [["m1", "m2"]] * 4, "the rows at once")
            clock.advance(days=36500)
            await append(keeper, key, "m3")
            expected = [["m1", "m2", "m3"]] * 4
            equal(await _every_read(keeper, key), expected, "the rows a century later")


@group.needs("options", "durable")
async def check_forever_rescues_before_any_cleanup(open_state: OpenState, clock: FakeClock) -> None:
    """Rescue expired rows of a closed store before opening it cleans anything up."""
    key = new_key()
    async with open_state(clock, **FOR_AN_HOUR) as state:
        request = SessionRequest(conversation=key)
        await state.transcripts.append(request, rows=numbered(450))
    clock.advance(days=365)
    async with open_state(clock, **FOREVER) as state:
        found = await stored_ids(state, key)
        equal(len(found), 450, "the number of rows")


@group.needs("options", "one_store")
async def check_what_was_cleaned_up_stays_gone(open_state: OpenState, clock: FakeClock) -> None:
    """Bring nothing back that was removed before `forever` was asked for."""
    key, other = new_key(), new_key()
    async with open_state(clock, **FOR_AN_HOUR) as state:
        await append(state, key, "m1")
        clock.advance(hours=2)
        async with open_state(clock, **FOR_AN_HOUR) as cleaner:
            for name in ("m1", "m2", "m3"):
                await append(cleaner, other, name)
        async with open_state(clock, **FOREVER) as keeper:
            equal(await stored_ids(keeper, key), [], "the rows")


@group.needs("options", "one_store")
async def check_a_duration_after_forever_is_for_new_rows(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Let rows expire that are recorded after `forever` was switched off, and no older ones."""
    key = new_key()
    async with open_state(clock, **FOREVER) as state:
        await append(state, key, "old")
        async with open_state(clock, **FOR_AN_HOUR) as later:
            await append(later, key, "new")
            equal(await stored_ids(later, key), ["old", "new"], "the rows")
            clock.advance(hours=2)
            equal(await _every_read(later, key), [["old"]] * 4, "the rows after two hours")


async def _every_read(state: AgentState, key: ConversationKey) -> list[list[str]]:
    """Return the ids that each kind of read shows."""
    window = await state.transcripts.window(key, session=None, window=WindowRequest(limit=9))
    page = await state.transcripts.page(key, request=PageRequest())
    exported = await stored_ids(state, key)
    known = ["m1", "m2", "m3", "old", "new"]
    got = await state.transcripts.get(key, message_ids=known)
    return [ids_of(window.shown), ids_of(page.items), exported, ids_of(got)]
