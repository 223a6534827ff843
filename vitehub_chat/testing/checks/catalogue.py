"""Catalogue: every check there is."""

from __future__ import annotations

from collections.abc import Sequence

from vitehub_chat.testing.checks import (
    admission,
    cancelling,
    claims,
    clearing,
    contents,
    interleavings,
    keys,
    leases,
    lifecycle,
    pages,
    retention,
    sessions,
    summaries,
    transcripts,
    windows,
)
from vitehub_chat.testing.checks.registry import Check

_MODULES = (
    lifecycle,
    keys,
    transcripts,
    contents,
    windows,
    pages,
    sessions,
    clearing,
    summaries,
    admission,
    claims,
    leases,
    interleavings,
    retention,
    cancelling,
)


def all_checks() -> Sequence[Check]:
    """Return every check, by group and in the order of the modules."""
    return [check for module in _MODULES for check in module.group.checks]
