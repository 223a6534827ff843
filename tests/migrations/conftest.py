"""Processes and servers for the tests of a worker."""

from __future__ import annotations

from tests.faults.conftest import crew
from tests.providers.conftest import postgres, sqld, sqld_servers

__all__ = ["crew", "postgres", "sqld", "sqld_servers"]
