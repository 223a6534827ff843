"""PostgreSQL keeps every rule of Agent State."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.postgres_server import Place, PostgresServer
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.pytest_plugin import AgentStateCheck

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def store(postgres: PostgresServer) -> Place:
    """Give the tables that all checks share."""
    return Place(postgres)


def test_postgres(agent_state_check: AgentStateCheck, store: Place) -> None:
    def open_state(clock: Clock, **options: Any) -> AgentState:
        return store.open(clock=clock, **options)

    agent_state_check.run(open_state)
