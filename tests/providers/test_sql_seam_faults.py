"""The Agent State by requests loses and doubles nothing, whoever writes and whatever is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import attrs
import pytest

from tests.providers.sql_seam import AT_ONCE, Fault, SeamDriver, seam_state
from vitehub_chat.errors import (
    ChatBusyError,
    ConfigError,
    SchemaVersionError,
    StateConflictError,
    StateError,
    StateUnavailableError,
)
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.sql import Capabilities, SqlAgentState
from vitehub_chat.state.sql.driver import Statement
from vitehub_chat.state.sql.retrying import Retrying
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.lines import new_line
from vitehub_chat.testing.checks.material import append, ids_of, new_key, numbers_of, row, stored
from vitehub_chat.testing.clock import FakeClock


async def test_what_is_too_large_for_the_database_is_refused_before_it_is_sent() -> None:
    driver = SeamDriver(":memory:")
    driver.capabilities = Capabilities(max_value_bytes=1000)
    async with seam_state(driver, FakeClock()) as state:
        key = new_key()
        await append(state, key, "m1")
        sent = len(driver.requests)
        rows = [row("m2"), row("m3", "é" * 500)]
        with pytest.raises(StateError, match=r"'body' has 10\d\d bytes") as caught:
            await state.transcripts.append(SessionRequest(conversation=key), rows=rows)
        assert (caught.value.code, len(driver.requests)) == ("too_large", sent)
        await append(state, key, "m4")

        assert ids_of(await stored(state, key)) == ["m1", "m4"]


def is_read(statements: Sequence[Statement]) -> bool:
    return statements[0][0].startswith("SELECT")


class Faults:
    """Something goes wrong with some of the writes: those whose place in line is named."""

    def __init__(self, **wrong: Fault) -> None:
        self._wrong = {int(place.removeprefix("at_")): fault for place, fault in wrong.items()}
        self._writes = 0

    def __call__(self, statements: Sequence[Statement]) -> Fault:
        if is_read(statements):
            return None
        self._writes += 1
        return self._wrong.get(self._writes)


@pytest.mark.parametrize("shared", [True, False], ids=["file each", "one connection"])
async def test_many_tasks_of_two_processes_lose_and_double_nothing(
    tmp_path: Path, *, shared: bool
) -> None:
    clock, key = FakeClock(), new_key()
    drivers = [SeamDriver(f"{tmp_path}/state.db") for _ in range(2)]
    drivers = drivers if shared else [drivers[0], drivers[0]]
    async with seam_state(drivers[0], clock) as one, seam_state(drivers[1], clock) as two:

        async def work(state: AgentState, name: str) -> list[int]:
            found = [await append(state, key, f"{name} {n}") for n in range(8)]
            return [row.seq for rows in found for row in rows]

        tasks = [
            work(state, f"{n} {task}") for n, state in enumerate((one, two)) for task in range(16)
        ]
        seqs = await asyncio.gather(*tasks)
        rows = await stored(one, key)
    assert numbers_of(rows) == list(range(1, 257))
    assert len(set(ids_of(rows))) == 256
    assert sorted(seq for each in seqs for seq in each) == list(range(1, 257))
    assert all(each == sorted(each) for each in seqs)


async def test_turns_of_two_processes_never_overlap(tmp_path: Path) -> None:
    clock = FakeClock()
    drivers = [SeamDriver(f"{tmp_path}/state.db") for _ in range(2)]
    async with seam_state(drivers[0], clock) as one, seam_state(drivers[1], clock) as two:
        first = new_line(one)
        lines = [first, first.seen_by(two)]
        names = [f"m{n}" for n in range(32)]
        answers = await asyncio.gather(*(lines[n % 2].admit(m) for n, m in enumerate(names)))
        grant = next(each.grant for each in answers if each.grant is not None)
        tokens: list[int] = []
        ran = []
        for number in range(len(names)):
            tokens.append(grant.token)
            ran.append(grant.ticket_id)
            following = await lines[number % 2].run(grant)
            assert (following is None) == (number == len(names) - 1)
            grant = following or grant
        rows = await stored(one, first.key)
    assert sorted(ran) == sorted(map(first.ticket, names))
    assert tokens == sorted(set(tokens))
    assert numbers_of(rows) == list(range(1, 65))


async def test_a_turn_that_began_meanwhile_is_not_cleared_away() -> None:
    driver, clock = SeamDriver(":memory:"), FakeClock()
    async with seam_state(driver, clock) as one, seam_state(driver, clock) as two:
        line = new_line(one)
        await line.run(await line.start("a"))
        batch = driver.batch

        async def overtaken(statements: Sequence[Statement]) -> object:
            if not is_read(statements):
                driver.batch = batch  # type: ignore[method-assign]
                await line.seen_by(two).start("b", lock_key="another one")
            return await batch(statements)

        driver.batch = overtaken  # type: ignore[method-assign,assignment]
        with pytest.raises(ChatBusyError):
            await one.sessions.clear(line.key)
        assert ids_of(await stored(one, line.key)) == ["a", "re a"]
        assert await line.states("b") == ["running"]


async def test_a_session_that_went_on_in_another_thread_is_the_newest() -> None:
    driver, clock = SeamDriver(":memory:"), FakeClock()
    here, there = new_key("here"), new_key("there")
    there = attrs.evolve(here, thread=there.thread)
    policy = SessionPolicy(strategy="hybrid", idle_timeout=timedelta(minutes=30))
    async with seam_state(driver, clock) as one, seam_state(driver, clock) as two:
        await append(one, here, "m1", policy=policy, base="s1")
        clock.advance(minutes=31)
        await append(two, there, "m2", policy=policy, base="s1")
        clock.advance(minutes=1)
        await append(one, here, "m3", policy=policy, base="s1")
        assert ids_of(await stored(one, here)) == ["m1"]
        assert ids_of(await stored(one, there)) == ["m2", "m3"]


async def test_tasks_of_one_process_do_not_refuse_each_other() -> None:
    driver, key = SeamDriver(":memory:"), new_key()
    async with seam_state(driver, FakeClock()) as state:
        await append(state, key, "first")
        driver.requests.clear()
        await asyncio.gather(*(append(state, key, f"m{n}") for n in range(20)))
    assert len(driver.requests) == 20


@pytest.mark.parametrize("fault", ["lost", "late", "away"])
@pytest.mark.parametrize("place", [1, 2, 3])
async def test_a_turn_with_a_lost_answer_is_a_turn(fault: Fault, place: int) -> None:
    driver = SeamDriver(":memory:")
    async with seam_state(driver, FakeClock()) as state:
        line = new_line(state)
        await line.run(await line.start("before"))
        driver.fault = Faults(**{f"at_{place}": fault})
        grant = await line.start("a", claim_id="a")
        recorded = await line.record(grant)
        finished = await line.finish(grant)
        assert (numbers_of(recorded.rows), finished.next) == ([3], None)
        assert ids_of(await stored(state, line.key)) == ["before", "re before", "a", "re a"]
        assert await line.states("a") == ["ended"]
        assert (await line.admit("b", claim_id="a")).verdict == "repeat"


async def test_a_write_that_comes_late_is_refused_once_it_was_made_anew() -> None:
    driver, key = SeamDriver(":memory:"), new_key()
    async with seam_state(driver, FakeClock()) as state:
        await append(state, key, "m1")
        late: list[Sequence[Statement]] = []

        def keep(statements: Sequence[Statement]) -> Fault:
            if is_read(statements) or late:
                return None
            late.append(statements)
            raise StateUnavailableError(outcome="unknown")

        driver.fault = keep
        assert numbers_of(await append(state, key, "m2")) == [2]
        with pytest.raises(StateConflictError):
            await driver.batch(late[0])
        assert ids_of(await stored(state, key)) == ["m1", "m2"]


async def test_an_error_is_given_once_a_late_write_cannot_happen_any_more(tmp_path: Path) -> None:
    path, clock = f"{tmp_path}/state.db", FakeClock()
    driver, late = SeamDriver(path), list[Sequence[Statement]]()
    batch = driver.batch
    async with seam_state(driver, clock) as state, seam_state(SeamDriver(path), clock) as other:
        line = new_line(state)
        grant = await line.start("a")

        async def overtaken(statements: Sequence[Statement]) -> object:
            if is_read(statements) or late:
                return await batch(statements)
            late.append(statements)
            clock.advance(minutes=1)
            await line.seen_by(other).take()
            raise StateUnavailableError(outcome="unknown")

        driver.batch = overtaken  # type: ignore[method-assign,assignment]
        with pytest.raises(StateConflictError) as caught:
            await line.record(grant)
        assert caught.value.code == "lock_lost"
        with pytest.raises(StateConflictError):
            await batch(late[0])
        assert await stored(state, line.key) == []


async def test_a_driver_that_repeats_by_itself_doubles_nothing() -> None:
    driver, key = SeamDriver(":memory:"), new_key()
    batch = driver.batch

    async def twice(statements: Sequence[Statement]) -> object:
        await batch(statements)
        return await batch(statements)

    async with seam_state(driver, FakeClock()) as state:
        await append(state, key, "m1")
        driver.batch = twice  # type: ignore[method-assign,assignment]
        assert numbers_of(await append(state, key, "m2")) == [2]
        driver.batch = batch  # type: ignore[method-assign]
        assert ids_of(await stored(state, key)) == ["m1", "m2"]


async def test_who_gets_no_answer_is_told_whether_it_may_be_written() -> None:
    driver, key = SeamDriver(":memory:"), new_key()
    few = Retrying(sleep=AT_ONCE.sleep, failures=3)
    async with SqlAgentState(driver, clock=FakeClock(), retrying=few) as state:
        await append(state, key, "m1")
        driver.fault = lambda _: "away"
        with pytest.raises(StateUnavailableError) as caught:
            await append(state, key, "m2")
        assert caught.value.outcome == "not_written"
        driver.fault = lambda statements: "away" if is_read(statements) else "lost"
        with pytest.raises(StateUnavailableError) as caught:
            await append(state, key, "m3")
        assert caught.value.outcome == "not_written"
        driver.fault = lambda _: None
        await append(state, key, "m4")
        driver.fault = lambda statements: "away" if is_read(statements) else "lost"
        with pytest.raises(StateUnavailableError) as caught:
            await append(state, key, "m5")
        assert caught.value.outcome == "unknown"
        driver.fault = lambda _: None
        assert ids_of(await stored(state, key)) == ["m1", "m4", "m5"]


async def test_a_read_goes_on_after_failures() -> None:
    driver, key = SeamDriver(":memory:"), new_key()
    async with seam_state(driver, FakeClock()) as state:
        await append(state, key, "m1")
        faults: list[Fault] = ["away", "lost", None]
        driver.fault = lambda _: faults.pop(0)
        assert ids_of(await stored(state, key)) == ["m1"]


async def test_pauses_grow_by_chance_up_to_a_limit() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    retrying = Retrying(sleep=sleep, draw=lambda: 1.0)
    for number in range(1, 9):
        await retrying.after_failure(number)
    assert slept == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert all(0 <= Retrying().draw() < 1 for _ in range(100))


async def test_an_opening_that_failed_leaves_nothing_and_may_be_repeated() -> None:
    driver = SeamDriver(":memory:")
    state = SqlAgentState(
        driver, clock=FakeClock(), retrying=Retrying(sleep=AT_ONCE.sleep, failures=2)
    )
    driver.fault = lambda _: "away"
    with pytest.raises(StateUnavailableError):
        await state.__aenter__()
    assert driver._connection is None
    driver.fault = lambda _: None
    async with state:
        await append(state, new_key(), "m1")


async def test_a_lost_answer_while_the_tables_are_made_harms_nothing(tmp_path: Path) -> None:
    driver = SeamDriver(f"{tmp_path}/state.db")
    driver.fault = Faults(at_1="lost", at_2="late", at_3="lost")
    key = new_key()
    async with seam_state(driver, FakeClock()) as state:
        await append(state, key, "m1")
        assert ids_of(await stored(state, key)) == ["m1"]


async def test_a_newer_schema_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    driver = SeamDriver(f"{tmp_path}/state.db")
    async with seam_state(driver, FakeClock()):
        insert = "INSERT INTO vitehub_agent_state_requests_schema VALUES (99, 0, 'x')"
        await driver.execute(insert, {})
    with pytest.raises(SchemaVersionError):
        await seam_state(driver, FakeClock()).__aenter__()


async def test_a_store_is_not_migrated_unless_it_may_be(tmp_path: Path) -> None:
    driver = SeamDriver(f"{tmp_path}/state.db")
    with pytest.raises(ConfigError):
        await seam_state(driver, FakeClock(), migrate=False).__aenter__()
    async with seam_state(driver, FakeClock()):
        pass
    async with seam_state(driver, FakeClock(), migrate=False) as state:
        await append(state, new_key(), "m1")


async def test_a_dropped_store_leaves_no_table() -> None:
    driver = SeamDriver(":memory:")
    other = seam_state(driver, FakeClock(), table_prefix="other_")
    async with other, seam_state(driver, FakeClock()) as state:
        await append(state, new_key(), "m1")
        await state.drop()
        names = await driver.execute("SELECT name FROM sqlite_schema WHERE type = 'table'", {})
    assert {str(name).partition("_")[0] for (name,) in names} <= {"other", "sqlite"}


def test_an_unknown_dialect_is_refused() -> None:
    driver = SeamDriver(":memory:")
    driver.capabilities = Capabilities(dialect="klingon")
    with pytest.raises(ConfigError, match="klingon"):
        SqlAgentState(driver, options=StateOptions())
