"""Rolling: the summary that replaces the oldest messages, changed by one at a time."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import attrs

from vitehub_chat.errors import InputError, StateConflictError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rolling import PendingFlush, Rolling, RollingWrite
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.checks.contents import TEXTS
from vitehub_chat.testing.checks.expecting import equal, present, refused
from vitehub_chat.testing.checks.lines import LEASE, new_line, under
from vitehub_chat.testing.checks.material import (
    FOR_AN_HOUR,
    FOREVER,
    MANUAL,
    append,
    new_key,
    stored_ids,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("rolling")


@group
async def check_a_session_begins_unrolled(open_state: OpenState, clock: FakeClock) -> None:
    """Answer with an empty summary for a session, and with none where there is no session."""
    key = new_key()
    async with open_state(clock) as state:
        equal(await _get(state, key), None, "the state of an unknown conversation")
        await append(state, key, "m1")
        found = present(await _get(state, key), "the state")
        equal((found.version, found.summary, found.anchor), (0, "", 1), "the state")
        equal((found.pending, found.fail_count, found.correction), (None, 0, 1.0), "the state")
        equal(await _get(state, key, "s1"), None, "the state of an unknown session")


@group
async def check_a_roll_comes_back_exactly(open_state: OpenState, clock: FakeClock) -> None:
    """Return summary, anchor, version, time and model of the last roll, and its checkpoint."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2", "m3")
        for number, text in enumerate(filter(str.strip, TEXTS), 1):
            clock.advance(seconds=1)
            written = await _roll(state, key, text, anchor=number + 1, model="openai:x")
            equal(written.refused, None, "whether it was refused")
            found = present(await _get(state, key), "the state")
            equal(written.rolling, found, "what was written")
            expected = (text, number + 1, number, clock.now(), "openai:x", number)
            actual = (found.summary, found.anchor, found.version, found.created_at, found.model)
            equal((*actual, found.through_seq), expected, "the state")
            last = (await state.summaries.get_checkpoints(key, session_id=None))[-1]
            checkpoint = (last.summary, last.through_seq + 1, last.version, last.created_at)
            equal((*checkpoint, last.model), expected[:-1], "the checkpoint")
        equal(await stored_ids(state, key), ["m1", "m2", "m3"], "the rows")


@group
async def check_one_of_many_rolls_is_kept(open_state: OpenState, clock: FakeClock) -> None:
    """Let one of ten that went on from the same state commit, and refuse the others."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2")
        since = present(await _get(state, key), "the state")
        rolls = (_roll(state, key, f"by {n}", since=since) for n in range(10))
        written = await asyncio.gather(*rolls)
        refusals = [each.refused for each in written]
        equal(sorted(map(str, refusals)), ["None", *["conflict"] * 9], "what was refused")
        found = present(await _get(state, key), "the state")
        winner = refusals.index(None)
        equal((found.summary, found.version), (f"by {winner}", 1), "the state")
        equal(await _through(state, key), [1], "the checkpoints")
        seen = {each.rolling for each in written}
        equal(seen, {found}, "the state that everybody is told")


@group
async def check_a_roll_of_a_cleared_session_is_refused(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Bring nothing back that was cleared or deleted while a summary was written."""
    async with open_state(clock) as state:
        for delete_session in (False, True):
            key = new_key()
            await append(state, key, "m1", "m2", base="s1", policy=MANUAL)
            await _roll(state, key, "first", session_id="s1")
            since = present(await _get(state, key, "s1"), "the state")
            counts = await state.sessions.clear(key, session_id="s1", delete_session=delete_session)
            equal(counts["summaries"], 1, "the count of summaries")
            written = await _roll(state, key, "late", session_id="s1", since=since, anchor=3)
            equal(written.refused, "session_changed", "why the roll was refused")
            await append(state, key, "m3", base="s1", policy=MANUAL)
            written = await _roll(state, key, "late", session_id="s1", since=since, anchor=3)
            equal(written.refused, "session_changed", "why the roll was refused in the new session")
            found = present(await _get(state, key, "s1"), "the state")
            equal((found.summary, found.anchor, found.version), ("", 1, 0), "the state")
            equal(await _through(state, key, "s1"), [], "the checkpoints")


@group
async def check_rolling_states_of_sessions_stay_apart(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Keep the summary of each session for itself."""
    key = new_key()
    async with open_state(clock) as state:
        for name in ("s1", "s2"):
            await append(state, key, f"m {name}", base=name, policy=MANUAL)
        await _roll(state, key, "of s1", session_id="s1")
        other = present(await _get(state, key, "s2"), "the state")
        equal((other.summary, other.version), ("", 0), "the state of the other session")
        await _roll(state, key, "of s2", session_id="s2", anchor=7)
        found = [present(await _get(state, key, name), "the state") for name in ("s1", "s2")]
        equal([(each.summary, each.anchor) for each in found], [("of s1", 2), ("of s2", 7)], "both")
        await state.sessions.clear(key, session_id="s1")
        left = present(await _get(state, key, "s2"), "the state")
        equal(left, found[1], "the state that was not cleared")


@group
async def check_pending_and_failures_are_noted(open_state: OpenState, clock: FakeClock) -> None:
    """Note the pending batch, failures and correction without a new version; a roll voids them."""
    key, pending = new_key(), PendingFlush("f" * 32, 1, 4)
    async with open_state(clock) as state:
        await append(state, key, "m1")
        since = present(await _get(state, key), "the state")
        more: dict[str, Any] = {"session_id": None, "since": since}
        await state.summaries.set_pending(key, pending=pending, **more)
        for error in ("timeout", "refused"):
            await state.summaries.note_failure(key, error=error, **more)
        await state.summaries.set_correction(key, correction=1.15, **more)
        found = present(await _get(state, key), "the state")
        expected = attrs.evolve(
            since, pending=pending, fail_count=2, last_error="refused", correction=1.15
        )
        equal(found, expected, "the state")
        await _roll(state, key, "so far", since=since)
        after = present(await _get(state, key), "the state")
        facts = (after.pending, after.fail_count, after.last_error, after.correction)
        equal(facts, (None, 0, None, 1.15), "the state after a roll")
        late = [
            await state.summaries.set_pending(key, pending=pending, **more),
            await state.summaries.note_failure(key, error="late", **more),
            await state.summaries.set_correction(key, correction=2.0, **more),
        ]
        equal([each.refused for each in late], ["conflict"] * 3, "why late notes were refused")
        equal(await _get(state, key), after, "the state after late notes")


@group
async def check_old_checkpoints_are_thinned(open_state: OpenState, clock: FakeClock) -> None:
    """Keep the newest checkpoints, and of the older ones every eighth."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1")
        for number in range(1, 31):
            await _roll(state, key, f"{number}", anchor=number * 4 + 1, checkpoints_kept=5)
        kept = [8 * 4, 16 * 4, 24 * 4, *(number * 4 for number in range(26, 31))]
        equal(await _through(state, key), kept, "what the checkpoints cover")


@group
async def check_a_roll_needs_a_summary_and_a_higher_anchor(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse a blank summary and an anchor that does not rise."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1")
        await _roll(state, key, "first", anchor=3)
        before = await _get(state, key)
        await refused(InputError, _roll(state, key, " \n", anchor=4), "a blank summary")
        await refused(InputError, _roll(state, key, "again", anchor=3), "the same anchor")
        equal(await _get(state, key), before, "the state")


@group
async def check_a_roll_under_a_lost_lock_is_refused(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Write no summary of a turn whose lease is over."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.record(grant)
        clock.advance(seconds=LEASE.total_seconds())
        call = _roll(state, line.key, "late", ctx=under(grant))
        await refused(StateConflictError, call, "the roll", code="lock_lost")
        found = present(await _get(state, line.key), "the state")
        equal(found.version, 0, "the version")


@group.needs("options")
async def check_a_summary_lives_as_long_as_rows(open_state: OpenState, clock: FakeClock) -> None:
    """Let the summary expire that long after it was written, with its checkpoints."""
    key = new_key()
    async with open_state(clock, **FOR_AN_HOUR) as state:
        await append(state, key, "m1")
        await _roll(state, key, "so far")
        clock.advance(minutes=59)
        equal(present(await _get(state, key), "the state").summary, "so far", "the summary")
        clock.advance(minutes=1)
        found = await _get(state, key)
        equal(None if found is None else found.summary, "", "the summary at that moment")
        equal(await _through(state, key), [], "the checkpoints at that moment")


@group.needs("options", "one_store")
async def check_forever_keeps_summaries(open_state: OpenState, clock: FakeClock) -> None:
    """Keep summaries under `forever`, expired ones that are still there included."""
    key = new_key()
    seldom = {"cleanup_interval_ms": 2**31 - 1}
    async with open_state(clock, **FOR_AN_HOUR, **seldom) as state:
        await append(state, key, "m1")
        await _roll(state, key, "so far")
        clock.advance(hours=1)
        async with open_state(clock, **FOREVER) as keeper:
            equal(present(await _get(keeper, key), "the state").summary, "so far", "the summary")
            await _roll(keeper, key, "and later", anchor=3)
            clock.advance(days=36500)
            found = present(await _get(keeper, key), "the state")
            equal((found.summary, found.version), ("and later", 2), "the state a century later")
            equal(await _through(keeper, key), [1, 2], "the checkpoints")


async def _get(
    state: AgentState, key: ConversationKey, session_id: str | None = None
) -> Rolling | None:
    return await state.summaries.get_rolling(key, session_id=session_id)


async def _roll(
    state: AgentState,
    key: ConversationKey,
    summary: str,
    *,
    session_id: str | None = None,
    since: Rolling | None = None,
    anchor: int = 2,
    **more: Any,
) -> RollingWrite:
    """Write a summary on top of a state, by default of the one that is stored."""
    found = since or present(await _get(state, key, session_id), "the state")
    return await state.summaries.commit_roll(
        key, session_id=session_id, since=found, summary=summary, anchor=anchor, **more
    )


async def _through(
    state: AgentState, key: ConversationKey, session_id: str | None = None
) -> list[int]:
    found = await state.summaries.get_checkpoints(key, session_id=session_id)
    return [each.through_seq for each in found]
