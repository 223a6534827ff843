"""Providers of other distributions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.bugs.support import agent_on, say, texts_of
from vitehub_chat import open_agent_state
from vitehub_chat.errors import ConfigError
from vitehub_chat.plugins import state_providers
from vitehub_chat.state.contract import AgentState

PROVIDER = """
from vitehub_chat.state.providers.memory import open_memory

def open_shelf(url, **options):
    return open_memory("memory:", **options)
"""


def install(folder: Path, name: str, entries: str, **modules: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    header = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    (info / "METADATA").write_text(header, encoding="utf-8")
    text = f"[vitehub_agent.state]\n{entries}\n"
    (info / "entry_points.txt").write_text(text, encoding="utf-8")
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source, encoding="utf-8")


async def use(state: AgentState) -> list[str]:
    async with state:
        agent = agent_on(state)
        await say(agent, "A")
        return await texts_of(agent)


def test_L321_a_provider_of_another_distribution_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("VITEHUB_CHAT_PLUGINS", raising=False)
    install(tmp_path, "shelf", "shelf = l321_shelf:open_shelf", l321_shelf=PROVIDER)
    install(tmp_path, "broken", "broken = l321_broken:open", l321_broken="raise ImportError('x')")
    install(tmp_path, "one", "twice = l321_shelf:open_shelf")
    install(tmp_path, "two", "twice = l321_shelf:open_shelf")
    assert {"shelf", "broken", "file", "memory"} <= set(state_providers.names())
    assert asyncio.run(use(open_agent_state("shelf:here"))) == ["A", "re A"]
    with pytest.raises(ConfigError) as caught:
        open_agent_state("broken:")
    assert "broken" in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        open_agent_state("twice:")
    assert all(name in str(caught.value) for name in ("one", "two"))
    with pytest.raises(ConfigError) as caught:
        open_agent_state("shelv:")
    assert "shelf" in str(caught.value)
