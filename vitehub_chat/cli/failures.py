"""Failures: what the command says when it cannot do what was asked, and its exit codes."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import Final, NamedTuple

from vitehub_chat.cli.text import json_line, safe_line
from vitehub_chat.errors import (
    ChatBusyError,
    ChatError,
    ConfigError,
    CursorError,
    InputError,
    MissingDependencyError,
    NotFoundError,
    StateClosedError,
    StateConflictError,
    StateUnavailableError,
)

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
CONFIGURATION: Final = 3
NOT_FOUND: Final = 4
BUSY: Final = 5
UNAVAILABLE: Final = 6
MISSING_EXTRA: Final = 7

JSON_FLAG: Final = "--json"

_EXIT_CODES: Final[tuple[tuple[type[ChatError], int], ...]] = (
    (ConfigError, CONFIGURATION),
    (InputError, USAGE),
    (CursorError, USAGE),
    (NotFoundError, NOT_FOUND),
    (ChatBusyError, BUSY),
    (StateConflictError, BUSY),
    (StateUnavailableError, UNAVAILABLE),
    (StateClosedError, UNAVAILABLE),
    (MissingDependencyError, MISSING_EXTRA),
)


class Failure(NamedTuple):
    """Why a command ends early.

    Attributes:
        code: For programs to match on.
        message: What is wrong, for people.
        exit_code: The exit code of the process.
        hint: What to do about it, or None.
        path: Where the wrong value is, or None.
    """

    code: str
    message: str
    exit_code: int
    hint: str | None = None
    path: str | None = None


def failure_of(error: BaseException) -> Failure:
    """Return what to say about an error.

    Of an error that is not ours only its class and its place are told: its text may hold a secret
    or quote a message.
    """
    if isinstance(error, ChatError):
        path = getattr(error, "path", None)
        return Failure(error.code, error.message, exit_code_of(error), error.hint, path)
    return Failure(
        "internal",
        f"{type(error).__name__} at {_place(error)}",
        FAILED,
        "its text is not shown, it may quote messages; call the agent from Python to see it",
    )


def exit_code_of(error: ChatError) -> int:
    """Return the exit code of one of our errors."""
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), FAILED)


def report(failure: Failure, *, as_json: bool) -> None:
    """Write a failure to standard error."""
    if as_json:
        given = {
            "code": failure.code,
            "message": failure.message,
            "hint": failure.hint,
            "path": failure.path,
        }
        error = {name: value for name, value in given.items() if value is not None}
        sys.stderr.write(f"{json_line({'error': error})}\n")
        return
    where = f"{failure.path}: " if failure.path else ""
    sys.stderr.write(f"error: {safe_line(where + failure.message)}\n")
    if failure.hint:
        sys.stderr.write(f"hint: {safe_line(failure.hint)}\n")


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    if trace is None:
        return "an unknown place"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
