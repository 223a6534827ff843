"""The Agent State by requests answers like the one in memory, whatever happens to its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.providers.seam_stories import Call, Side, stories, tell_alike
from tests.providers.sql_seam import Fault, SeamDriver, seam_state
from vitehub_chat.state.providers.memory import open_memory
from vitehub_chat.testing.clock import FakeClock

RETENTIONS: tuple[dict[str, Any], ...] = ({}, {"transcripts": {"retention": "40s"}})

quick = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


async def compare(
    story: Sequence[tuple[Call, int]], options: dict[str, Any], faults: Sequence[Fault] = ()
) -> None:
    clock = FakeClock()
    driver = SeamDriver(":memory:")
    wrong = cycle(faults or [None])
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


@given(
    story=stories,
    faults=st.lists(
        st.sampled_from([None, None, None, "lost", "late", "away"]), min_size=9, max_size=40
    ).filter(lambda faults: None in faults),
)
@quick
def test_lost_answers_change_nothing(
    story: Sequence[tuple[Call, int]], faults: Sequence[Fault]
) -> None:
    asyncio.run(compare(story, {}, faults))
