"""Children that are killed, for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.children import Children


@pytest.fixture(scope="session")
def children() -> Iterator[Children]:
    """Give the process whose children are killed."""
    process = Children()
    yield process
    process.close()
