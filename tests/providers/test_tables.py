"""The tables of every provider answer like plain ones."""

from __future__ import annotations

import pytest

from tests.providers.table_checks import check_tables
from vitehub_chat.state.providers.memory import open_memory
from vitehub_chat.testing.clock import FakeClock


@pytest.mark.slow
def test_memory_answers_like_plain_tables() -> None:
    check_tables(lambda: open_memory("memory:", clock=FakeClock()), examples=60)
