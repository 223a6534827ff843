"""Children that are killed, and the servers that they use, for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.children import Children
from tests.faults.crew import Crew
from tests.providers.conftest import own_sqld, postgres, sqld, sqld_servers

__all__ = ["own_sqld", "postgres", "sqld", "sqld_servers"]


@pytest.fixture(scope="session")
def children() -> Iterator[Children]:
    """Give the process whose children are killed."""
    process = Children()
    yield process
    process.close()


@pytest.fixture(scope="session")
def crew() -> Iterator[Crew]:
    """Give the process whose children use a state."""
    process = Crew()
    yield process
    process.close()
