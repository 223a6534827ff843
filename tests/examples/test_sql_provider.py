"""A third party's proof: its provider keeps every rule of Agent State."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from vitehub_chat.testing.pytest_plugin import AgentStateCheck

EXAMPLE = Path(__file__).parents[2] / "examples" / "sql_provider.py"


@pytest.fixture(scope="module")
def open_shelf() -> Any:
    return runpy.run_path(str(EXAMPLE))["open_shelf"]


@pytest.fixture
def agent_state_opener(open_shelf: Any, tmp_path: Path) -> Any:
    url = f"shelf:{tmp_path}/shelf.db"
    return lambda clock, **options: open_shelf(url, clock=clock, **options)


def test_conformance(agent_state_check: AgentStateCheck, agent_state_opener: Any) -> None:
    agent_state_check.run(agent_state_opener)
