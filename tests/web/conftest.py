"""Where agents behind routes keep their state: in memory, in a file, nowhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.web.site import SetSite, Site
from vitehub_chat.testing.clock import FakeClock


@pytest.fixture(autouse=True)
def no_state_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the variables of the machine out of the tests."""
    monkeypatch.delenv("VITEHUB_AGENT_STATE_URL", raising=False)
    monkeypatch.delenv("VITEHUB_AGENT_STATE_AUTH_TOKEN", raising=False)


@pytest.fixture
def clock() -> FakeClock:
    """Give the clock of every state of a test."""
    return FakeClock()


@pytest.fixture
async def sites(clock: FakeClock) -> AsyncIterator[Callable[[str | None], SetSite]]:
    """Give a function that returns a function that sets up sites on one store."""
    async with AsyncExitStack() as stack:

        def at(url: str | None) -> SetSite:
            async def set_up(**options: Any) -> Site:
                site = Site(url, clock, **options)
                await site.open()
                stack.push_async_callback(site.close)
                return site

            return set_up

        yield at


@pytest.fixture
def set_site(sites: Callable[[str | None], SetSite], tmp_path: Path) -> SetSite:
    """Give a function that sets up a site with a state; all sites of a test share it."""
    return sites(f"memory:{tmp_path}")


@pytest.fixture
def set_file_site(sites: Callable[[str | None], SetSite], tmp_path: Path) -> SetSite:
    """Give a function that sets up a site with a state in a file."""
    return sites(f"file:{tmp_path}/state.db")


@pytest.fixture
def set_stateless_site(sites: Callable[[str | None], SetSite]) -> SetSite:
    """Give a function that sets up a site without a state."""
    return sites(None)
