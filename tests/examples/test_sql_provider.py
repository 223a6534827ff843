"""The example of a state provider of one's own keeps every rule of Agent State."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from vitehub_chat.model.clock import Clock
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.pytest_plugin import AgentStateCheck

EXAMPLE = Path(__file__).parents[2] / "examples" / "sql_provider.py"


def test_it_keeps_every_rule(agent_state_check: AgentStateCheck, tmp_path: Path) -> None:
    open_shelf = runpy.run_path(str(EXAMPLE))["open_shelf"]

    def open_state(clock: Clock, **options: Any) -> AgentState:
        state: AgentState = open_shelf(f"shelf:{tmp_path}/shelf.db", clock=clock, **options)
        return state

    agent_state_check.run(open_state)
