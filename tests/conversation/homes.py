"""Homes of scenes: every provider once, with agents in this process or in two of their own."""

from __future__ import annotations

import pytest

ONE = [
    "one-memory",
    "one-file",
    pytest.param("one-libsql", marks=pytest.mark.service),
    pytest.param("one-postgres", marks=pytest.mark.service),
]
"""With one agent; for `set_scene`, indirectly."""

TWO = [
    "two-memory",
    "two-file",
    pytest.param("two-libsql", marks=pytest.mark.service),
    pytest.param("two-postgres", marks=pytest.mark.service),
]
"""With two agents of one name; for `set_scene`, indirectly."""

PROCESSES_ON_SERVERS = [
    pytest.param("processes-libsql", marks=pytest.mark.service),
    pytest.param("processes-postgres", marks=pytest.mark.service),
]
"""With two processes; for `set_scene`, indirectly. A file is one of its own homes."""

ALL = [*ONE, "two-processes", *PROCESSES_ON_SERVERS]
"""With one agent on every provider, and with two processes where there can be any."""
