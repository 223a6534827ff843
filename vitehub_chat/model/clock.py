"""The clock: the only place that asks the system for the time of day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """A source of the current time; tests inject one that they move."""

    def now(self) -> datetime:
        """Return the current time, aware and in UTC."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Return the current time of the machine, aware and in UTC."""
        return datetime.now(UTC)


def to_epoch_us(time: datetime) -> int:
    """Return a time as whole microseconds since 1970, the form in which times are stored."""
    return (time - _EPOCH) // datetime.resolution


def from_epoch_us(value: int) -> datetime:
    """Return the aware UTC time of microseconds since 1970."""
    return _EPOCH + datetime.resolution * value


def in_us(duration: timedelta) -> int:
    """Return a duration as whole microseconds."""
    return duration // datetime.resolution


def to_epoch_ms(time: datetime) -> int:
    """Return a time as whole milliseconds since 1970, rounded down."""
    return to_epoch_us(time) // 1000


def read_time(value: object) -> datetime | None:
    """Return the time that a value means, aware and in UTC, or None if it means none.

    Readable are a datetime or ISO-8601 text (without an offset: UTC) and a finite number (not a
    bool) of milliseconds since 1970.
    """
    try:
        if isinstance(value, str):
            time = _from_iso(value)
            return time if time.tzinfo is UTC else _as_utc(time)
        if isinstance(value, datetime):
            return _as_utc(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _EPOCH + timedelta(milliseconds=value)
    except (ValueError, OverflowError):
        return None
    return None


def _as_utc(time: datetime) -> datetime:
    if time.tzinfo is UTC:
        return time
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


_from_iso = datetime.fromisoformat  # a name of its own: once per message of a long thread
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
