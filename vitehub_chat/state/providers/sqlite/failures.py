"""Failures: what an error of the database or the file system means to a caller."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Mapping

from vitehub_chat.errors import StateError, StateUnavailableError

_UNAVAILABLE = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})

_SQLITE_CODES: Mapping[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: ("no_space", "there is no space left for the state file"),
    sqlite3.SQLITE_READONLY: ("read_only", "the state file cannot be written"),
    sqlite3.SQLITE_PERM: ("read_only", "the state file cannot be written"),
    sqlite3.SQLITE_CORRUPT: ("corrupt", "the state file is damaged"),
    sqlite3.SQLITE_NOTADB: ("corrupt", "the state file is no SQLite database"),
    sqlite3.SQLITE_CANTOPEN: ("state_error", "the state file cannot be opened"),
    sqlite3.SQLITE_IOERR: ("state_error", "the state file cannot be read or written"),
}

_OS_CODES: Mapping[int | None, tuple[str, str]] = {
    errno.ENOSPC: ("no_space", "there is no space left for the state file"),
    errno.EDQUOT: ("no_space", "there is no space left for the state file"),
    errno.EACCES: ("read_only", "the state file cannot be created"),
    errno.EPERM: ("read_only", "the state file cannot be created"),
    errno.EROFS: ("read_only", "the state file cannot be created"),
}

_HINTS: Mapping[str, str] = {
    "no_space": "make room, or let state.url name a file elsewhere",
    "read_only": "the file of state.url and its folder have to be writable",
    "corrupt": "let state.url name another file, or bring this one back from a backup",
    "state_error": "state.url has to name a file in a folder that exists and can be written",
}

_BROKEN = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
    }
)


def breaks_connection(error: BaseException) -> bool:
    """Tell whether a connection may keep what it misread, or lack what it could not open."""
    return isinstance(error, sqlite3.Error) and _primary_code(error) in _BROKEN


def wrap_failure(error: sqlite3.Error | OSError) -> StateError:
    """Return the error that callers get, with `error` as its cause.

    Neither statements nor values nor the path are in its text.
    """
    wrapped = _wrap_os(error) if isinstance(error, OSError) else _wrap_sqlite(error)
    wrapped.__cause__ = error
    return wrapped


def _wrap_sqlite(error: sqlite3.Error) -> StateError:
    primary = _primary_code(error)
    if primary in _UNAVAILABLE:
        return StateUnavailableError(
            "somebody else kept writing to the state file",
            outcome="not_written",
            retryable=True,
            hint="try again, or raise busy_timeout_ms",
        )
    code, message = _SQLITE_CODES.get(primary, ("state_error", "the state file failed"))
    return StateError(message, code=code, hint=_HINTS[code])


def _wrap_os(error: OSError) -> StateError:
    code, message = _OS_CODES.get(error.errno, ("state_error", "the state file failed"))
    return StateError(message, code=code, hint=_HINTS[code])


def _primary_code(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF
