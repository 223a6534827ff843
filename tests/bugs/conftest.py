"""Stores for the tests of known faults: in memory and in a file, and with every provider."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.faults.conftest import crew
from tests.providers.conftest import postgres, sqld, sqld_servers
from vitehub_chat import open_agent_state
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.testing.clock import FakeClock

__all__ = ["crew", "postgres", "sqld", "sqld_servers"]


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


SERVICES = ["libsql", "postgres"]


@pytest.fixture(
    params=["memory", "file", *(pytest.param(s, marks=pytest.mark.service) for s in SERVICES)]
)
async def any_url(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[str]:
    """Give the URL of an empty store of each provider, kept until the end of the test."""
    async with keeping(request.param, request, path) as url:
        yield url


@pytest.fixture(
    params=[
        "file",
        *(pytest.param(s, marks=[pytest.mark.service, pytest.mark.slow]) for s in SERVICES),
    ]
)
async def shared_url(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[str]:
    """Give the URL of an empty store of each provider that several processes may use."""
    async with keeping(request.param, request, path) as url:
        yield url


@asynccontextmanager
async def keeping(kind: str, request: pytest.FixtureRequest, path: Path) -> AsyncIterator[str]:
    """Keep a store open, and drop what is in it at the end."""
    if kind == "file":
        yield f"file:{path}"
        return
    server = {"libsql": "sqld", "postgres": "postgres"}.get(kind)
    url = f"memory:{path}" if server is None else request.getfixturevalue(server).url
    async with open_agent_state(url) as keeper:
        yield url
        assert isinstance(keeper, SteppedAgentState)
        await keeper.drop()


@pytest.fixture
async def any_state(any_url: str, clock: FakeClock) -> AsyncIterator[SteppedAgentState]:
    """Give an opened state of each provider."""
    async with open_agent_state(any_url, clock=clock) as opened:
        assert isinstance(opened, SteppedAgentState)
        yield opened
