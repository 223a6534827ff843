"""Every call has one time: what it runs takes it, and never looks at the clock again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.providers.sql_seam import SeamDriver, seam_state
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.ids import new_id
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.memory import MemoryAgentState
from vitehub_chat.state.sql import SqlAgentState
from vitehub_chat.state.stepped import Step
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import PageRequest, WindowRequest
from vitehub_chat.testing.checks.material import append, ids_of, new_key
from vitehub_chat.testing.clock import FakeClock
from vitehub_chat.testing.pytest_plugin import AgentStateCheck

T = TypeVar("T")


class ClosedClock:
    """A clock that says nothing while it is closed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_closed = False

    def now(self) -> datetime:
        if self._is_closed:
            raise AssertionError("a step looked at the clock")
        return self._clock.now()

    @contextmanager
    def closed(self) -> Iterator[None]:
        self._is_closed = True
        try:
            yield
        finally:
            self._is_closed = False


class TimelessState(MemoryAgentState):
    """A state whose steps cannot look at its clock."""

    def __init__(self, clock: ClosedClock, **options: Any) -> None:
        name, checked = options.pop("name"), StateOptions.from_mapping(options)
        super().__init__(name=name, clock=clock, options=checked)
        self._closing = clock

    async def run_write(self, step: Step[T], /) -> T:
        return await super().run_write(self._timeless(step))

    async def run_read(self, step: Step[T], /) -> T:
        return await super().run_read(self._timeless(step))

    def _timeless(self, step: Step[T]) -> Step[T]:
        def run(tx: Transaction) -> T:
            with self._closing.closed():
                return step(tx)

        return run


def test_no_step_looks_at_the_clock(agent_state_check: AgentStateCheck) -> None:
    name = new_id()

    def open_state(clock: Clock, **options: Any) -> AgentState:
        return TimelessState(ClosedClock(clock), name=name, **options)

    agent_state_check.run(open_state)


class JumpingClock(FakeClock):
    """A clock that moves an hour as soon as somebody has looked at it, when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.jumps = False

    def now(self) -> datetime:
        seen = super().now()
        if self.jumps:
            self.jumps = False
            self.advance(hours=1)
        return seen


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
async def state(tmp_path: Path, clock: JumpingClock) -> AsyncIterator[SqlAgentState]:
    driver = SeamDriver(f"{tmp_path}/state.db")
    async with seam_state(driver, clock, transcripts={"retention": "1h"}) as opened:
        yield opened


async def test_a_page_is_that_of_the_time_it_was_asked_for(
    state: SqlAgentState, clock: JumpingClock
) -> None:
    key, request = new_key(), PageRequest(limit=3)
    await append(state, key, "m1", "m2")
    clock.jumps = True
    assert ids_of((await state.transcripts.page(key, request=request)).items) == ["m1", "m2"]
    assert ids_of((await state.transcripts.page(key, request=request)).items) == []


async def test_a_window_is_that_of_the_time_it_was_asked_for(
    state: SqlAgentState, clock: JumpingClock
) -> None:
    key, window = new_key(), WindowRequest(limit=3)
    await append(state, key, "m1", "m2")
    clock.jumps = True
    seen = await state.transcripts.window(key, session=None, window=window)
    assert ids_of(seen.shown) == ["m1", "m2"]
    later = await state.transcripts.window(key, session=None, window=window)
    assert ids_of(later.shown) == []
