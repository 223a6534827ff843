"""The Agent State on a real libSQL server keeps every rule of Agent State."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.sqld_server import SqldServer
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.providers.libsql import open_libsql
from vitehub_chat.testing.pytest_plugin import AgentStateCheck

pytestmark = [pytest.mark.service, pytest.mark.slow]


def test_a_server(agent_state_check: AgentStateCheck, shared_sqld: SqldServer) -> None:
    # One set of tables for all: a server reads the whole schema with each request.
    def open_state(clock: Clock, **options: Any) -> AgentState:
        return open_libsql(shared_sqld.url, clock=clock, table_prefix="kit_", **options)

    agent_state_check.run(open_state)
