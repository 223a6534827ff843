"""Plans: what each turn gave to the model, kept as long as its rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import attrs

from vitehub_chat.errors import StateConflictError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.plans import AnsweredBy, PlanSummary, TurnPlan
from vitehub_chat.model.results import ContextBudget, SelectionEntry
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.expecting import equal, refused
from vitehub_chat.testing.checks.lines import LEASE, Line, new_line, under
from vitehub_chat.testing.checks.material import (
    FOR_AN_HOUR,
    FOREVER,
    MANUAL,
    new_key,
    rows,
    stored_ids,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("plans")

PLAN: Final = TurnPlan(
    turn_id="",
    session_id="é😀",
    run_id="run 1",
    status="complete",
    answered_by=AnsweredBy("echo", "openai:x", "openai_chat"),
    created_at=datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    summary=PlanSummary(3, 12),
    entries=(
        SelectionEntry("m\u20282", 2, "assistant", kept=True, reason="window", tokens=7),
        SelectionEntry(None, None, "user", kept=True, reason="current"),
        SelectionEntry("m1", 1, "user", kept=False, reason="too_old"),
    ),
    left_out=4,
    trimmed=1,
    context_budget=ContextBudget(limit=1000, used=333, used_pct=33.3, unit="runes"),
)


@group
async def check_a_plan_comes_back_exactly(open_state: OpenState, clock: FakeClock) -> None:
    """Return the plan of a turn with everything that is in it."""
    async with open_state(clock) as state:
        line = new_line(state)
        await _turn(line, "a")
        expected = attrs.evolve(PLAN, turn_id=line.ticket("a"))
        found = await state.plans.get(line.key, turn_id=line.ticket("a"))
        equal(found, expected, "the plan")
        equal(await state.plans.get(line.key), expected, "the newest plan")


@group
async def check_the_newest_plan_is_of_the_turn_that_ended_last(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Return the plan of the newest turn, of the conversation or of one session."""
    async with open_state(clock) as state:
        line = new_line(state)
        for name, base in (("a", "s1"), ("b", "s2"), ("c", "s1"), ("d", "s2")):
            await _turn(line, name, base=base, policy=MANUAL)
        found = [await _newest(state, line.key, session) for session in (None, "s1", "s2", "s3")]
        expected = [line.ticket("d"), line.ticket("c"), line.ticket("d"), None]
        equal(found, expected, "the turns of the newest plans")
        of_other = await state.plans.get(line.key, turn_id=line.ticket("a"), session_id="s2")
        equal(of_other, None, "the plan of a turn of another session")


@group
async def check_an_unknown_turn_has_no_plan(open_state: OpenState, clock: FakeClock) -> None:
    """Return no plan for unknown turns and conversations, nor for those of somebody else."""
    async with open_state(clock) as state:
        line = new_line(state)
        equal(await state.plans.get(line.key), None, "the plan of an unknown conversation")
        await _turn(line, "a")
        equal(await state.plans.get(line.key, turn_id="x"), None, "the plan of an unknown turn")
        foreign = await state.plans.get(new_key(), turn_id=line.ticket("a"))
        equal(foreign, None, "the plan seen from another conversation")


@group
async def check_a_plan_is_written_with_the_end(open_state: OpenState, clock: FakeClock) -> None:
    """Write no plan when the end is refused because the lock was lost."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.record(grant)
        clock.advance(seconds=LEASE.total_seconds())
        call = line.finish(grant, plan=attrs.evolve(PLAN, turn_id=grant.ticket_id))
        await refused(StateConflictError, call, "the end", code="lock_lost")
        equal(await state.plans.get(line.key, turn_id=grant.ticket_id), None, "the plan")


@group
async def check_clearing_deletes_plans(open_state: OpenState, clock: FakeClock) -> None:
    """Delete the plans of a cleared session, then those of the conversation, and count them."""
    async with open_state(clock) as state:
        line = new_line(state)
        for name, base in (("a", "s1"), ("b", "s2"), ("c", "s1")):
            await _turn(line, name, base=base, policy=MANUAL)
        counts = await state.sessions.clear(line.key, session_id="s1")
        equal(counts["plans"], 2, "the count of the session")
        equal(await _newest(state, line.key, None), line.ticket("b"), "the turn that is left")
        equal((await state.sessions.clear(line.key))["plans"], 1, "the count of the conversation")
        equal(await state.plans.get(line.key), None, "the plan")


@group.needs("options")
async def check_a_plan_lives_as_long_as_rows(open_state: OpenState, clock: FakeClock) -> None:
    """Let a plan expire with a row that was recorded at the end of its turn."""
    async with open_state(clock, **FOR_AN_HOUR) as state:
        line = new_line(state)
        await _turn(line, "a")
        clock.advance(minutes=59, seconds=59.999999)
        equal(await _newest(state, line.key, None), line.ticket("a"), "the plan just before")
        clock.advance(microseconds=1)
        equal(await stored_ids(state, line.key), [], "the rows at that moment")
        equal(await state.plans.get(line.key), None, "the newest plan at that moment")
        by_turn = await state.plans.get(line.key, turn_id=line.ticket("a"))
        equal(by_turn, None, "the plan at that moment")


@group.needs("options", "one_store")
async def check_forever_keeps_plans(open_state: OpenState, clock: FakeClock) -> None:
    """Keep plans under `forever`, expired ones that are still there included."""
    seldom = {"cleanup_interval_ms": 2**31 - 1}
    async with open_state(clock, **FOR_AN_HOUR, **seldom) as state:
        line = new_line(state)
        await _turn(line, "a")
        clock.advance(hours=1)
        async with open_state(clock, **FOREVER) as keeper:
            equal(await _newest(keeper, line.key, None), line.ticket("a"), "the plan at once")
            await _turn(line.seen_by(keeper), "b")
            clock.advance(days=36500)
            for name in ("a", "b"):
                found = await keeper.plans.get(line.key, turn_id=line.ticket(name))
                equal(found, attrs.evolve(PLAN, turn_id=line.ticket(name)), f"the plan of {name}")


async def _turn(line: Line, name: str, **session: Any) -> None:
    """Run a turn in a session, with a plan."""
    grant = await line.start(name)
    await line.state.turns.record(
        grant.ticket_id,
        rows=rows(name),
        session=SessionRequest(conversation=line.key, **session),
        ctx=under(grant),
    )
    await line.finish(grant, plan=attrs.evolve(PLAN, turn_id=grant.ticket_id))


async def _newest(state: AgentState, key: ConversationKey, session_id: str | None) -> str | None:
    found = await state.plans.get(key, session_id=session_id)
    return None if found is None else found.turn_id
