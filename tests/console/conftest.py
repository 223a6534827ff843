"""Chromium, and consoles to look at with it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.console.desk import Desk
from tests.console.viewer import Chromium, Viewer

SetDesk = Callable[..., Desk]
Look = Callable[[Desk], Viewer]


@pytest.fixture(autouse=True)
def no_state_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the variables of the machine out of the tests."""
    monkeypatch.delenv("VITEHUB_AGENT_STATE_URL", raising=False)
    monkeypatch.delenv("VITEHUB_AGENT_STATE_AUTH_TOKEN", raising=False)


@pytest.fixture
def set_desk(tmp_path: Path) -> Iterator[SetDesk]:
    """Give a function that serves a console."""
    with ExitStack() as stack:

        def serve(**facts: Any) -> Desk:
            return stack.enter_context(Desk(f"memory:{tmp_path}", **facts))

        yield serve


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """Give the Chromium of the machine."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium on PATH")
    with Chromium.started(path) as chromium:
        yield chromium


@pytest.fixture
def look(chromium: Chromium) -> Iterator[Look]:
    """Give a function that looks at a desk; in the end the browser has complained of nothing."""
    viewers: list[Viewer] = []
    with ExitStack() as stack:

        def at(desk: Desk) -> Viewer:
            page = stack.enter_context(chromium.page())
            viewers.append(Viewer(chromium, page, desk))
            return viewers[-1]

        yield at
    assert [viewer.problems for viewer in viewers] == [[] for _ in viewers]
