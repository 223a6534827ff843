"""Values, plans and rolling summaries by requests: how many, and none that happens twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from tests.providers.sql_seam import Fault, SeamDriver, seam_state
from tests.providers.test_sql_seam_requests import requests_of
from vitehub_chat.errors import StateConflictError, StateUnavailableError
from vitehub_chat.state.sql import SqlAgentState
from vitehub_chat.state.sql.driver import Statement
from vitehub_chat.testing.checks.lines import new_line
from vitehub_chat.testing.checks.material import append, new_key
from vitehub_chat.testing.checks.plans import PLAN
from vitehub_chat.testing.clock import FakeClock

SCOPE = new_key()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def driver(tmp_path: Path) -> SeamDriver:
    return SeamDriver(f"{tmp_path}/state.db")


@pytest.fixture
async def state(driver: SeamDriver, clock: FakeClock) -> AsyncIterator[SqlAgentState]:
    async with seam_state(driver, clock) as opened:
        yield opened


def is_write(statements: Sequence[Statement]) -> bool:
    return any(not text.startswith("SELECT") for text, _ in statements)


async def test_a_value_takes_one_request_to_read_and_one_more_to_change(
    state: SqlAgentState, driver: SeamDriver
) -> None:
    values = state.values
    taken = [
        await requests_of(driver, call)
        for call in (
            values.get("k", scope=SCOPE),
            values.set("k", value=1, scope=SCOPE),
            values.set_if_absent("k", value=1, scope=SCOPE),
            values.compare_and_set("k", expected=1, value=2, scope=SCOPE),
            values.delete("k", scope=SCOPE),
            values.append_to_list("k", items=[1], scope=SCOPE),
            values.get_list("k", scope=SCOPE),
            values.pop_from_list("k", scope=SCOPE),
        )
    ]
    assert taken == [1, 2, 1, 2, 2, 2, 1, 2]


async def test_plans_and_summaries_take_one_request_to_read(
    state: SqlAgentState, driver: SeamDriver
) -> None:
    key = new_key()
    await append(state, key, "m1")
    since = await state.summaries.get_rolling(key, session_id=None)
    assert since is not None
    roll = state.summaries.commit_roll(
        key, session_id=None, since=since, summary="so far", anchor=2
    )
    assert await requests_of(driver, roll) <= 3
    for call in (
        state.summaries.get_rolling(key, session_id=None),
        state.summaries.get_checkpoints(key, session_id=None),
        state.plans.get(key),
        state.plans.get(key, session_id="s1"),
        state.plans.get(key, turn_id="t1"),
    ):
        assert await requests_of(driver, call) == 1


async def test_a_plan_takes_no_request_of_its_own(state: SqlAgentState, driver: SeamDriver) -> None:
    line = new_line(state)
    await line.run(await line.start("a"))
    grant = await line.start("b")
    await line.record(grant)
    assert await requests_of(driver, line.finish(grant, plan=PLAN)) == 1


@pytest.mark.parametrize("fault", ["lost", "late", "away"])
async def test_a_change_without_an_answer_happens_once(
    state: SqlAgentState, driver: SeamDriver, fault: Fault
) -> None:
    faults: list[Fault] = [fault]
    driver.fault = lambda sent: faults.pop() if faults and is_write(sent) else None
    assert await state.values.append_to_list("l", items=[1], scope=SCOPE) == 1
    assert await state.values.get_list("l", scope=SCOPE) == [1]
    faults.append(fault)
    assert await state.values.set_if_absent("k", value=1, scope=SCOPE) is True
    faults.append(fault)
    assert await state.values.pop_from_list("l", scope=SCOPE) == 1
    assert await state.values.get_list("l", scope=SCOPE) == []


async def test_what_was_given_up_never_happens_later(
    state: SqlAgentState, driver: SeamDriver, clock: FakeClock
) -> None:
    held: list[Sequence[Statement]] = []

    async def others_set_it_meanwhile() -> None:
        async with seam_state(SeamDriver(driver._path), clock) as other:
            await other.values.set("k", value="theirs", scope=SCOPE)

    def hold(sent: Sequence[Statement]) -> Fault:
        if is_write(sent) and not held:
            held.append(sent)
            return "late"
        driver._late.clear()
        return None

    driver.fault = hold
    assert await state.values.set_if_absent("k", value="ours", scope=SCOPE) is True
    assert await state.values.delete("k", scope=SCOPE) is True
    with pytest.raises(StateConflictError):
        await driver.batch(held[0])
    await others_set_it_meanwhile()
    assert await state.values.get("k", scope=SCOPE) == "theirs"


async def test_clearing_ends_what_is_being_changed_in_its_scope(
    state: SqlAgentState, driver: SeamDriver, clock: FakeClock
) -> None:
    key = new_key()
    await append(state, key, "m1")
    await state.values.append_to_list("l", items=["old"], scope=key)
    held: list[Sequence[Statement]] = []

    def hold(sent: Sequence[Statement]) -> Fault:
        if is_write(sent):
            held.append(sent)
            return "away"
        return "away" if held else None

    driver.fault = hold
    with pytest.raises(StateUnavailableError):
        await state.values.append_to_list("l", items=["new"], scope=key)
    driver.fault = lambda _: None
    async with seam_state(SeamDriver(driver._path), clock) as other:
        await other.sessions.clear(key)
    with pytest.raises(StateConflictError):
        await driver.batch(held[0])
    assert await state.values.get_list("l", scope=key) == []


async def test_scopes_of_values_are_forgotten_like_those_of_idle_locks(
    driver: SeamDriver, clock: FakeClock
) -> None:
    async with seam_state(driver, clock, cleanup_interval_ms=1) as state:
        for number in range(5):
            ttl = timedelta(seconds=1)
            await state.values.set(f"k{number}", value=1, ttl=ttl, scope=SCOPE)
        clock.advance(hours=2)
        await state.values.set("k0", value=2, scope=SCOPE)
        counts = [
            (await driver.execute(text, {}))[0][0]
            for text in (
                "SELECT count(*) FROM vitehub_agent_state_documents",
                "SELECT count(*) FROM vitehub_agent_state_scopes",
            )
        ]
        assert counts == [1, 1]
        assert await state.values.get("k0", scope=SCOPE) == 2
