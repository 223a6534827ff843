"""The Agent State by requests answers like the one in memory, whatever happens to its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.providers.seam_stories import Call, Side, calls, pass_time, stories, tell_alike
from tests.providers.sql_seam import Fault, SeamDriver, seam_state
from vitehub_chat.state.providers.memory import open_memory
from vitehub_chat.state.sql.driver import Statement
from vitehub_chat.testing.clock import FakeClock

RETENTIONS: tuple[dict[str, Any], ...] = ({}, {"transcripts": {"retention": "40s"}})

quick = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


async def compare(
    story: Sequence[tuple[Call, int]], options: dict[str, Any], faults: Sequence[Fault] = ()
) -> None:
    clock = FakeClock()
    driver = SeamDriver(":memory:")
    wrong = chain(faults, repeat(None))
    async with (
        open_memory("memory:", clock=clock, **options) as memory,
        seam_state(driver, clock, **options) as one,
        seam_state(driver, clock, **options) as two,
    ):
        driver.fault = lambda _: next(wrong)
        await tell_alike(story, clock, memory, Side([one, two]))


@pytest.mark.parametrize("options", RETENTIONS, ids=["kept", "expiring"])
@given(story=stories)
@quick
def test_two_objects_of_one_database_answer_like_memory(
    options: dict[str, Any], story: Sequence[tuple[Call, int]]
) -> None:
    asyncio.run(compare(story, options))


async def interleave(
    story: Sequence[tuple[Call, int]], call: Call, faster: Call, options: dict[str, Any]
) -> None:
    """Make a call beside another one that is faster: it is as if that had come before."""
    clock = FakeClock()
    driver = SeamDriver(":memory:")
    async with (
        open_memory("memory:", clock=clock, **options) as memory,
        seam_state(driver, clock, **options) as one,
        seam_state(driver, clock, **options) as two,
    ):
        side, other = Side([memory]), Side([one, two])
        for each, seconds in story:
            pass_time(clock, memory, seconds)
            assert await other.tell(each) == await side.tell(each)
        pass_time(clock, memory, 0)
        batch, answers = driver.batch, []

        async def late_batch(statements: Sequence[Statement]) -> object:
            if not statements[0][0].startswith("SELECT"):
                driver.batch = batch  # type: ignore[method-assign]
                answers.append(await beside.tell(faster))
            return await batch(statements)

        beside, late = other.beside(), side.beside()
        driver.batch = late_batch  # type: ignore[method-assign,assignment]
        answer = await other.tell(call)
        driver.batch = batch  # type: ignore[method-assign]
        if answers:
            assert answers == [await side.tell(faster)]
        assert answer == await late.tell(call)


@given(story=stories, call=calls("slow"), faster=calls("fast"))
@quick
def test_a_call_that_was_overtaken_answers_as_if_it_came_later(
    story: Sequence[tuple[Call, int]], call: Call, faster: Call
) -> None:
    asyncio.run(interleave(story, call, faster, {}))


@given(
    story=stories,
    faults=st.lists(
        st.sampled_from([None, None, None, "lost", "late", "away"]), min_size=20, max_size=150
    ),
)
@quick
def test_lost_answers_change_nothing(
    story: Sequence[tuple[Call, int]], faults: Sequence[Fault]
) -> None:
    asyncio.run(compare(story, {}, faults))
