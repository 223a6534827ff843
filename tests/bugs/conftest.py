"""Stores for the tests of known faults: each in memory and in a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from vitehub_chat import open_agent_state
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    """Give a clock that stands still."""
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the place of a state file."""
    return tmp_path / "state.db"


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, path: Path) -> str:
    """Give the URL of a store that several states can open."""
    return f"memory:{path}" if request.param == "memory" else f"file:{path}"


@pytest.fixture
async def state(url: str, clock: FakeClock) -> AsyncIterator[SteppedAgentState]:
    """Give an opened state."""
    async with open_agent_state(url, clock=clock) as opened:
        assert isinstance(opened, SteppedAgentState)
        yield opened
