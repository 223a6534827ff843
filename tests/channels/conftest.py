"""Where agents on channels keep their state: nowhere, in memory, in a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.channels.scene import Scene, SetScene
from vitehub_chat.testing.clock import FakeClock


@pytest.fixture(autouse=True)
def no_state_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the variables of the machine out of the tests."""
    monkeypatch.delenv("VITEHUB_AGENT_STATE_URL", raising=False)
    monkeypatch.delenv("VITEHUB_AGENT_STATE_AUTH_TOKEN", raising=False)


@pytest.fixture(params=["stateless", "memory", "file"])
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """Give the URL of a state, None for an agent without one."""
    return url_of(request.param, tmp_path)


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """Give the URL of a state."""
    return url_of(request.param, tmp_path)


def url_of(kind: str, tmp_path: Path) -> str | None:
    urls = {"stateless": None, "memory": f"memory:{tmp_path}", "file": f"file:{tmp_path}/state.db"}
    return urls[kind]


@pytest.fixture
def clock() -> FakeClock:
    """Give the clock of every state of a test."""
    return FakeClock()


@pytest.fixture
async def scenes(clock: FakeClock) -> AsyncIterator[Callable[..., SetScene]]:
    """Give a function that returns a function that sets scenes on one store."""
    async with AsyncExitStack() as stack:

        def at(url: str | None) -> SetScene:
            async def set_scene(**options: Any) -> Scene:
                scene = Scene(url, clock, **options)
                await scene.open()
                stack.push_async_callback(scene.close)
                return scene

            return set_scene

        yield at


@pytest.fixture
def set_any_scene(scenes: Callable[..., SetScene], any_url: str | None) -> SetScene:
    """Give a function that sets a scene, with a state or without."""
    return scenes(any_url)


@pytest.fixture
def set_scene(scenes: Callable[..., SetScene], url: str) -> SetScene:
    """Give a function that sets a scene with a state; all scenes of a test share it."""
    return scenes(url)


@pytest.fixture
def set_stateless_scene(scenes: Callable[..., SetScene]) -> SetScene:
    """Give a function that sets a scene without a state."""
    return scenes(None)
