"""The Agent State by requests keeps every rule of Agent State."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.providers.sql_seam import SeamDriver, seam_state
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.pytest_plugin import AgentStateCheck


def test_a_file_by_requests(agent_state_check: AgentStateCheck, tmp_path: Path) -> None:
    def open_state(clock: Clock, **options: Any) -> AgentState:
        return seam_state(SeamDriver(f"{tmp_path}/state.db"), clock, **options)

    agent_state_check.run(open_state)


def test_one_database_in_memory(agent_state_check: AgentStateCheck) -> None:
    def open_state(clock: Clock, **options: Any) -> AgentState:
        driver = SeamDriver(":memory:", is_shared=False)
        return seam_state(driver, clock, **options)

    agent_state_check.run(open_state)
