"""Where agents keep their state: nowhere, in memory, in a file."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.agent.support import Waiting
from vitehub_chat import open_agent_state
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock


@pytest.fixture(autouse=True)
def no_state_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the variables of the machine out of the tests."""
    monkeypatch.delenv("VITEHUB_AGENT_STATE_URL", raising=False)
    monkeypatch.delenv("VITEHUB_AGENT_STATE_AUTH_TOKEN", raising=False)


@pytest.fixture(params=["stateless", "memory", "file"])
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """Give the URL of a state, None for an agent without one."""
    urls = {"stateless": None, "memory": "memory:", "file": f"file:{tmp_path}/state.db"}
    return urls[request.param]


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of a state."""
    return "memory:" if request.param == "memory" else f"file:{tmp_path}/state.db"


@pytest.fixture
def clock() -> FakeClock:
    """Give the clock of `state`."""
    return FakeClock()


@pytest.fixture
async def state(url: str, clock: FakeClock) -> AsyncIterator[AgentState]:
    """Give an opened state whose time is moved by `clock`."""
    async with open_agent_state(url, clock=clock) as opened:
        yield opened


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    """Give the count of messages that have to wait."""
    logger = logging.getLogger("vitehub_chat.conversation")
    before, counter = logger.level, Waiting()
    logger.addHandler(counter)
    logger.setLevel(logging.DEBUG)
    yield counter
    logger.removeHandler(counter)
    logger.setLevel(before)
