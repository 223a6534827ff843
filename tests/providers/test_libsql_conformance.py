"""The Agent State on a real libSQL server keeps every rule of Agent State."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from tests.providers.sqld_server import SqldServer
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.providers.libsql import open_libsql
from vitehub_chat.testing.pytest_plugin import AgentStateCheck

pytestmark = [pytest.mark.service, pytest.mark.slow]

_numbers = count()


def test_a_server(agent_state_check: AgentStateCheck, sqld: SqldServer) -> None:
    prefix = f"kit_{next(_numbers)}_"

    def open_state(clock: Clock, **options: Any) -> AgentState:
        return open_libsql(sqld.url, clock=clock, table_prefix=prefix, **options)

    agent_state_check.run(open_state)
