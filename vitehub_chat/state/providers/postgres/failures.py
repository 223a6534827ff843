"""Failures: what an error of the server means to a caller, and whether to try again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import psycopg

from vitehub_chat.errors import ChatError, ConfigError, StateError, StateUnavailableError

CONFLICTS: Final = frozenset({"40001", "40P01"})
"""Serialization failure and deadlock: nothing is wrong, another transaction was first."""

DUPLICATES: Final = frozenset({"23505", "42P07"})
"""Two made the same; who tries again sees what the other made."""

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


def is_lost(error: psycopg.Error) -> bool:
    """Tell whether an error says that there is no connection, or none any more."""
    code = error.sqlstate
    if code is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return code[:2] == "08" or code in _AWAY


def may_pass(error: psycopg.Error) -> bool:
    """Tell whether the same may succeed soon; nothing was written."""
    if error.sqlstate in CONFLICTS | DUPLICATES:
        return True
    return is_lost(error) and _refusal_of(error) is None


def is_uncertain(error: psycopg.Error) -> bool:
    """Tell whether an error of a commit leaves open if it was written."""
    return is_lost(error) or error.sqlstate in _UNCERTAIN


def wrap_failure(error: psycopg.Error, hide: Callable[[str], str]) -> ChatError:
    """Return the error that callers get, with a cause that shows no value and no password."""
    wrapped = _refusal_of(error) or _wrap(error)
    wrapped.__cause__ = redact(error, hide)
    return wrapped


def wrap_uncertain(error: psycopg.Error, hide: Callable[[str], str]) -> StateError:
    """Return the error for a commit that was not answered."""
    wrapped = StateUnavailableError(
        "the connection was lost while the state was written",
        outcome="unknown",
        hint="repeat it with the same ids",
    )
    wrapped.__cause__ = redact(error, hide)
    return wrapped


def redact(error: psycopg.Error, hide: Callable[[str], str]) -> psycopg.Error:
    """Return an error of the same class without the values that its details name."""
    code = error.sqlstate
    if code is None:
        return type(error)(hide(str(error)))
    is_about_values = code[:2] == "22"
    primary = None if is_about_values else error.diag.message_primary
    return type(error)(f"{code}: {hide(primary)}" if primary else code)


def _refusal_of(error: psycopg.Error) -> ConfigError | None:
    """Return the error for a server that does not let this user in, or None."""
    text, code = str(error), error.sqlstate
    needs_password = error.pgconn is not None and error.pgconn.needs_password
    if code == "42501" or (code or "")[:2] == "28" or needs_password or _REFUSED.search(text):
        return ConfigError(
            "the server refuses this user" if code != "42501" else "the user lacks a privilege",
            path="state.url",
            code="unauthorized",
            hint="check user name, password and privileges",
        )
    if code == "3D000" or (code is None and _UNKNOWN_DATABASE.search(text)):
        return ConfigError("names a database that does not exist", path="state.url")
    # The driver itself complains about a parameter that it takes for its own.
    is_complaint = isinstance(error, psycopg.ProgrammingError) or _BAD_PARAMETER.search(text)
    if code is None and is_complaint:
        return ConfigError("has a parameter with a wrong value", path="state.url")
    return None


def _wrap(error: psycopg.Error) -> StateError:
    code = error.sqlstate
    if is_lost(error):
        return StateUnavailableError("the server of the state does not answer")
    if code in CONFLICTS or code in {"55P03", "57014"}:
        return StateUnavailableError(
            "somebody else kept writing to the state",
            hint="try again, or raise busy_timeout_ms",
        )
    if code is not None and code[:2] == "53" and code not in _MEANINGS:
        return StateUnavailableError("the server of the state is overloaded")
    kind, message = _MEANINGS.get(code or "", ("state_error", "the state failed"))
    return StateError(message, code=kind)
