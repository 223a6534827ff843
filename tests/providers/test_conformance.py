"""Every provider keeps every rule of Agent State."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vitehub_chat.model.clock import Clock
from vitehub_chat.model.ids import new_id
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.opening import open_agent_state
from vitehub_chat.testing.checks.registry import OpenState
from vitehub_chat.testing.pytest_plugin import AgentStateCheck


def opener(url: str) -> OpenState:
    def open_state(clock: Clock, **options: Any) -> AgentState:
        return open_agent_state(url, clock=clock, **options)

    return open_state


def test_memory(agent_state_check: AgentStateCheck) -> None:
    agent_state_check.run(opener(f"memory:{new_id()}"))


def test_sqlite_file(agent_state_check: AgentStateCheck, tmp_path: Path) -> None:
    agent_state_check.run(opener(f"file:{tmp_path}/state.db"))


def test_sqlite_in_memory(agent_state_check: AgentStateCheck) -> None:
    agent_state_check.run(opener("sqlite::memory:"))
