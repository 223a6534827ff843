"""Scenes: a store in memory or in a file, with one agent, two agents, or two processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conversation.scene import Scene
from tests.conversation.station import LocalSite, RemoteSite, Station, StationProcess
from tests.faults.homes import new_home, options_of
from tests.providers.conftest import postgres, sqld, sqld_servers
from vitehub_chat import open_agent_state
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.testing.clock import FakeClock

__all__ = ["postgres", "sqld", "sqld_servers"]

SetScene = Callable[..., Awaitable[Scene]]


@pytest.fixture(scope="session")
def processes() -> Iterator[list[StationProcess]]:
    """Give two processes with a station each, for all tests of a worker."""
    started: list[StationProcess] = []
    yield started
    for process in started:
        process.close()


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of a store of this test alone, in a file unless it asks for memory."""
    kind = getattr(request, "param", "file")
    return f"memory:{tmp_path}" if kind == "memory" else f"file:{tmp_path}/state.db"


@pytest.fixture(
    params=[
        "one-memory",
        "one-file",
        "two-memory",
        "two-processes",
        pytest.param("two-libsql", marks=pytest.mark.service),
        pytest.param("two-postgres", marks=pytest.mark.service),
    ]
)
async def set_scene(
    request: pytest.FixtureRequest, tmp_path: Path, processes: list[StationProcess]
) -> AsyncIterator[SetScene]:
    """Give a function that sets a scene for the options of a `chat()`."""
    number, kind = request.param.split("-")
    is_remote = "processes" in (number, kind)
    store = store_of(kind, request, tmp_path)
    clock = FakeClock()
    async with AsyncExitStack() as stack:

        async def remote(options: Mapping[str, Any], process: StationProcess) -> RemoteSite:
            site = RemoteSite(process)
            await site.ask("open", store=store, options=options)
            stack.push_async_callback(site.ask, "close")
            return site

        async def local(options: Mapping[str, Any]) -> LocalSite:
            station = Station(options, clock)
            await station.open(**store)
            stack.push_async_callback(station.close)
            return LocalSite(station)

        async def set_up(strategy: object, **options: Any) -> Scene:
            given = {"concurrency": strategy, **options}
            state = await stack.enter_async_context(open_agent_state(clock=clock, **store))
            assert isinstance(state, SteppedAgentState)
            if is_remote:
                while len(processes) < 2:
                    processes.append(StationProcess())
                first, second = await asyncio.gather(*(remote(given, p) for p in processes))
                return Scene(first, second, state, clock)
            one = await local(given)
            other = one if number == "one" else await local(given)
            return Scene(one, other, state, clock)

        yield set_up


def store_of(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Return the URL and the options of a store of this test alone."""
    if kind == "memory":
        return {"url": f"memory:{tmp_path}"}
    home = new_home(kind, request, tmp_path)
    return {"url": home.url, **options_of(home)}
