"""Failures: what an error of the server means to a caller, and whether to try again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import psycopg
from psycopg.errors import lookup
from psycopg.pq import DiagnosticField
from psycopg.pq.abc import PGresult

from vitehub_chat.errors import (
    ChatError,
    ConfigError,
    StateConflictError,
    StateError,
    StateUnavailableError,
)

_OVERTAKEN: Final = frozenset({"40001", "40P01"})
"""Serialization failure and deadlock: nothing is wrong, another transaction was first."""

_MADE_TWICE: Final = frozenset({"42P07", "42710"})
_AWAY: Final = frozenset({"25P03", "25P04", "53300", "57P01", "57P02", "57P03", "57P05"})
_UNCERTAIN: Final = frozenset({"40003", "08007"})

_MEANINGS: Final[Mapping[str, tuple[str, str]]] = {
    "53100": ("no_space", "there is no space left for the state"),
    "25006": ("read_only", "the state cannot be written"),
    "XX001": ("corrupt", "the state is damaged"),
    "XX002": ("corrupt", "the state is damaged"),
    "42P01": ("state_error", "the tables of the state are gone"),
}

_REFUSED: Final = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|pg_hba\.conf rejects"
    r"|role \"[^\"]*\" (does not exist|is not permitted)|permission denied for database",
)
_UNKNOWN_DATABASE: Final = re.compile(r"database \"[^\"]*\" does not exist")
_BAD_PARAMETER: Final = re.compile(r"invalid \w+ value|invalid integer value")


class AttemptError(Exception):
    """One attempt at a transaction failed.

    Attributes:
        error: What callers get if there is no other attempt; its cause shows no value.
        may_repeat: Whether nothing was done, and the same may succeed soon.
    """

    def __init__(self, error: ChatError, cause: BaseException, *, may_repeat: bool = False) -> None:
        super().__init__(str(cause))
        self.error = error
        self.error.__cause__ = cause
        self.may_repeat = may_repeat


def of_connecting(error: psycopg.Error, hide: Callable[[str], str]) -> AttemptError:
    """Return what it means that no connection could be made."""
    cause = type(error)(hide(str(error)))
    needs_password = error.pgconn is not None and error.pgconn.needs_password
    refusal = _refusal_of(str(error), is_complaint=isinstance(error, psycopg.ProgrammingError))
    if refusal is None and needs_password:
        refusal = _unauthorized("the server refuses this user")
    if refusal is not None:
        return AttemptError(refusal, cause)
    return AttemptError(_away(), cause, may_repeat=True)


def of_losing(
    error: psycopg.Error | None, hide: Callable[[str], str], *, may_be_written: bool
) -> AttemptError:
    """Return what it means that a connection was lost before the end of a transaction."""
    cause = psycopg.OperationalError(hide(str(error)))
    if may_be_written:
        return AttemptError(_unknown(), cause)
    return AttemptError(_away(), cause, may_repeat=True)


def of_result(result: PGresult, hide: Callable[[str], str], *, at_end: bool) -> AttemptError:
    """Return what the error of a statement means; `at_end` is that of the commit."""
    code = _field(result, DiagnosticField.SQLSTATE)
    cause = _cause_of(code, None if code[:2] == "22" else _message_of(result, hide))
    is_lost = code[:2] == "08" or code in _AWAY
    if at_end and (is_lost or code in _UNCERTAIN):
        return AttemptError(_unknown(), cause)
    if is_lost:
        return AttemptError(_away(), cause, may_repeat=True)
    return AttemptError(_error_of(code), cause, may_repeat=code in _OVERTAKEN)


def _error_of(code: str) -> ChatError:
    if code == "42501" or code[:2] == "28":
        who = "the user lacks a privilege" if code == "42501" else "the server refuses this user"
        return _unauthorized(who)
    if code == "3D000":
        return _no_database()
    if code[:2] == "23" or code in _OVERTAKEN | _MADE_TWICE:
        return StateConflictError("somebody else was first")
    if code in {"55P03", "57014"}:
        return StateUnavailableError(
            "somebody else kept writing to the state",
            hint="try again, or raise busy_timeout_ms",
        )
    if code[:2] == "53" and code not in _MEANINGS:
        return StateUnavailableError("the server of the state is overloaded")
    kind, message = _MEANINGS.get(code, ("state_error", "the state failed"))
    return StateError(message, code=kind)


def _refusal_of(text: str, *, is_complaint: bool) -> ConfigError | None:
    """Return the error for a server that does not let this user in, or None."""
    if _REFUSED.search(text):
        return _unauthorized("the server refuses this user")
    if _UNKNOWN_DATABASE.search(text):
        return _no_database()
    # The driver itself complains about a parameter that it takes for its own.
    if is_complaint or _BAD_PARAMETER.search(text):
        return ConfigError("has a parameter with a wrong value", path="state.url")
    return None


def _unauthorized(message: str) -> ConfigError:
    return ConfigError(
        message,
        path="state.url",
        code="unauthorized",
        hint="check user name, password and privileges",
    )


def _no_database() -> ConfigError:
    return ConfigError("names a database that does not exist", path="state.url")


def _away() -> StateUnavailableError:
    return StateUnavailableError(
        "the server of the state does not answer", hint="check that state.url names one that runs"
    )


def _unknown() -> StateUnavailableError:
    return StateUnavailableError(
        "the connection was lost while the state was written",
        outcome="unknown",
        hint="repeat it with the same ids",
    )


def _message_of(result: PGresult, hide: Callable[[str], str]) -> str:
    """Return the first line of an error, which names no values but those of class 22."""
    return hide(_field(result, DiagnosticField.MESSAGE_PRIMARY))


def _field(result: PGresult, field: DiagnosticField) -> str:
    return (result.error_field(field) or b"").decode(errors="replace")


def _cause_of(code: str, message: str | None) -> psycopg.Error:
    try:
        kind: type[psycopg.Error] = lookup(code)
    except KeyError:
        kind = psycopg.DatabaseError
    return kind(f"{code}: {message}" if message else code)
