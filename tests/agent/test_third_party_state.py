"""A state of another distribution: its provider is looked for and imported off the event loop."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.agent.support import agent_of, run, say, turn
from vitehub_chat import plugins
from vitehub_chat.errors import ConfigError
from vitehub_chat.state.providers.memory import open_memory


async def test_the_provider_of_a_scheme_is_looked_for_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[threading.Thread] = []

    def open_elsewhere(_url: str, **options: Any) -> Any:
        return open_memory("memory:elsewhere", **options)

    def get(name: str, **_more: Any) -> Any:
        if name != "elsewhere":
            return found(name, **_more)
        threads.append(threading.current_thread())
        return open_elsewhere

    found = plugins.state_providers.get
    monkeypatch.setattr(plugins.state_providers, "get", get)
    async with agent_of("echo", "elsewhere:x") as agent:
        assert (await run(agent, turn(say("hi", "m1")))).status == "complete"
    assert threading.main_thread() not in threads
    assert len(threads) == 1


async def test_callers_that_come_at_once_share_one_state(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []

    def get(name: str, **_more: Any) -> Any:
        return found(name, **_more) if name != "elsewhere" else open_elsewhere

    def open_elsewhere(_url: str, **options: Any) -> Any:
        opened.append(open_memory("memory:told-by-a-plugin", **options))
        return opened[-1]

    found = plugins.state_providers.get
    monkeypatch.setattr(plugins.state_providers, "get", get)
    async with agent_of("echo", "elsewhere:x") as agent:
        await asyncio.gather(*(run(agent, turn(say("hi", f"m{n}"))) for n in range(5)))
    assert len(opened) == 1


async def test_an_unknown_scheme_is_told_by_the_first_use() -> None:
    agent = agent_of("echo", "elsewhere:x")
    with pytest.raises(ConfigError, match="elsewhere"):
        await run(agent, turn(say("hi", "m1")))
