"""Durations: from the milliseconds of the edge to the `timedelta` of the inside."""

from __future__ import annotations

from datetime import timedelta

_FARTHEST_MS = 10**14
"""Some 3,000 years: still a time of day when it is added to now."""

_MOST = 2**53 - 1
"""More than any array, table or queue holds, and less than what a database takes as a limit."""


def span(milliseconds: int) -> timedelta:
    """Return a duration that is compared with others."""
    return timedelta(milliseconds=milliseconds)


def term(milliseconds: int) -> timedelta:
    """Return a duration that is added to the current time; no time comes after year 9999."""
    return timedelta(milliseconds=min(milliseconds, _FARTHEST_MS))


def optional_term(milliseconds: int | None) -> timedelta | None:
    """Return a duration that is added to the current time, or None for no limit."""
    return None if milliseconds is None else term(milliseconds)


def count(number: int) -> int:
    """Return how many at most; a number that nothing reaches becomes one that a database takes."""
    return min(number, _MOST)
