"""The Agent State by requests keeps every rule of Agent State on a database of one process.

On a file that others share it is `examples/sql_provider.py` that is held to them.
"""

from __future__ import annotations

from tests.providers.sql_seam import SeamDriver, seam_state
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.pytest_plugin import AgentStateCheck


def test_one_database_in_memory(agent_state_check: AgentStateCheck) -> None:
    def open_state(clock: Clock, **options: object) -> AgentState:
        driver = SeamDriver(":memory:", is_shared=False)
        return seam_state(driver, clock, **options)

    agent_state_check.run(open_state)
