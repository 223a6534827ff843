"""Catalogue: every check there is."""

from __future__ import annotations

from collections.abc import Sequence

from vitehub_chat.testing.checks import (
    admission,
    anchors,
    cancelling,
    claims,
    clearing,
    contents,
    damaged,
    interleavings,
    keys,
    leases,
    lifecycle,
    looking_after,
    making_room,
    pages,
    plans,
    removing,
    retention,
    rolling,
    search,
    sessions,
    settling,
    summaries,
    sweeping,
    transcripts,
    truncating,
    turn_index,
    values,
    windows,
)
from vitehub_chat.testing.checks.registry import Check

_MODULES = (
    lifecycle,
    keys,
    transcripts,
    contents,
    damaged,
    windows,
    pages,
    search,
    sessions,
    clearing,
    summaries,
    turn_index,
    truncating,
    making_room,
    removing,
    rolling,
    anchors,
    values,
    admission,
    claims,
    leases,
    settling,
    sweeping,
    interleavings,
    plans,
    retention,
    cancelling,
    looking_after,
)


def all_checks() -> Sequence[Check]:
    """Return every check, by group and in the order of the modules."""
    return [check for module in _MODULES for check in module.group.checks]
