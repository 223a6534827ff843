"""Failures: what an error of the server or of the network means, and who may try again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal

from vitehub_chat.errors import ChatError, ConfigError, StateError, StateUnavailableError

Repeat = Literal["always", "idempotent", "never"]
"""When an attempt may be repeated: nothing was done; perhaps it was done; it would fail again."""

_QUOTED: Final = re.compile(r"""(["'`]).*?\1|(["'`]).*""", re.DOTALL)
_STREAM: Final = re.compile(
    r"baton|stream\W(?:\w+\W){0,3}(?:expired|not.found|invalid|closed)|STREAM_", re.IGNORECASE
)
_MAX_TEXT: Final = 200


class HranaError(Exception):
    """What the server said, as the cause of an error; without anything that it quoted.

    Attributes:
        code: The code, such as `SQLITE_CONSTRAINT`, or `HTTP_503`.
    """

    def __init__(self, code: str, message: str = "") -> None:
        self.code = code
        # What is quoted may be a part of a query or a value.
        text = _QUOTED.sub("…", message)[:_MAX_TEXT]
        super().__init__(f"{code}: {text}" if text else code)


class ConstraintError(StateError):
    """A constraint of the database refused a statement; nothing was written."""


class TooLargeError(StateError):
    """A value or an answer is larger than the server allows; nothing was written."""


class Failure(Exception):
    """One attempt failed.

    Attributes:
        error: What callers get if there is no other attempt.
        repeat: When there may be another one.
        at_once: Whether the next one needs no pause, if it is the second.
        timed_out: Whether no answer came in time.
    """

    def __init__(
        self,
        error: ChatError,
        repeat: Repeat,
        cause: BaseException | None = None,
        *,
        at_once: bool = False,
        timed_out: bool = False,
    ) -> None:
        super().__init__(repeat)
        self.error = error
        self.error.__cause__ = cause
        self.repeat = repeat
        self.at_once = at_once
        self.timed_out = timed_out


def unavailable(
    message: str,
    repeat: Repeat,
    cause: BaseException | None = None,
    *,
    at_once: bool = False,
    timed_out: bool = False,
) -> Failure:
    """Return the failure of an attempt that got no answer, or none that says what was done."""
    outcome: Literal["unknown", "not_written"] = (
        "unknown" if repeat == "idempotent" else "not_written"
    )
    error = StateUnavailableError(message, outcome=outcome)
    return Failure(error, repeat, cause, at_once=at_once, timed_out=timed_out)


def from_code(code: str, message: str) -> Failure:
    """Return the failure that an error in an answer means; the transaction was rolled back."""
    cause = HranaError(code, message)
    if _STREAM.search(code) or (not code and _STREAM.search(message)):
        return unavailable("the server lost the stream", "idempotent", cause, at_once=True)
    for prefix, make in _CODES.items():
        if code.startswith(prefix):
            return make(cause)
    return Failure(StateError(f"the server refused a statement: {cause.code}"), "never", cause)


def from_status(status: int, text: str) -> Failure:
    """Return the failure that an HTTP status other than 200 means."""
    cause = HranaError(f"HTTP_{status}", text)
    if status in {400, 404, 410} and _STREAM.search(text):
        # A stream is looked up before anything of the request is done.
        return unavailable("the server lost the stream", "always", cause, at_once=True)
    if status in _STATUSES:
        return _STATUSES[status](cause)
    if status >= 500 or status == 408:  # noqa: PLR2004  server errors begin there; a timeout
        return unavailable(f"the server failed with status {status}", "idempotent", cause)
    if status < 400:  # noqa: PLR2004  redirects end there
        error = ConfigError(
            "the server refers to another address", path="state.url", hint="give that one"
        )
        return Failure(error, "never", cause)
    return Failure(StateError(f"the server refused a request: status {status}"), "never", cause)


def too_large(what: str, cause: BaseException | None = None) -> Failure:
    """Return the failure for what is above a limit of size."""
    return Failure(TooLargeError(f"{what} is larger than the server allows"), "never", cause)


def unauthorized(cause: BaseException | None = None) -> Failure:
    """Return the failure for a token that is wrong, expired or missing."""
    error = ConfigError(
        "the server does not accept the token, or wants one",
        path="state.auth_token",
        code="unauthorized",
        hint="set auth_token or auth_token_env to a token that is valid for this database",
    )
    return Failure(error, "never", cause)


def _forbidden(cause: HranaError) -> Failure:
    return Failure(
        StateError(
            "the server does not allow this to the token",
            code="read_only",
            hint="use a token that may read and write",
        ),
        "never",
        cause,
    )


def _no_endpoint(cause: HranaError) -> Failure:
    error = ConfigError(
        "no Hrana over HTTP, version 3 or 2, at this address",
        path="state.url",
        hint="check host, port and base path; servers with version 1 alone need ws:// or wss://",
    )
    return Failure(error, "never", cause)


def _busy(cause: HranaError) -> Failure:
    return unavailable("somebody else kept writing to the database", "always", cause)


def _overloaded(cause: HranaError) -> Failure:
    return unavailable("the server has too much to do", "always", cause)


def _constraint(cause: HranaError) -> Failure:
    return Failure(ConstraintError("a constraint refused a statement"), "never", cause)


def _plain(message: str, code: str) -> Callable[[HranaError], Failure]:
    return lambda cause: Failure(StateError(message, code=code), "never", cause)


_CODES: Final[Mapping[str, Callable[[HranaError], Failure]]] = {
    "SQLITE_BUSY": _busy,
    "SQLITE_LOCKED": _busy,
    "SQLITE_PROTOCOL": _busy,
    "TRANSACTION_TIMEOUT": _busy,
    "TRANSACTION_BUSY": _busy,
    "SQLITE_CONSTRAINT": _constraint,
    "SQLITE_TOOBIG": lambda cause: too_large("a value", cause),
    "RESPONSE_TOO_LARGE": lambda cause: too_large("an answer", cause),
    "SQLITE_FULL": _plain("there is no space left at the server", "no_space"),
    "SQLITE_READONLY": _plain("the database cannot be written", "read_only"),
    "SQLITE_AUTH": _forbidden,
    "SQLITE_CORRUPT": _plain("the database is damaged", "corrupt"),
    "SQLITE_NOTADB": _plain("the database is damaged", "corrupt"),
    "BLOCKED": _forbidden,
    "AUTH_": unauthorized,
}

_STATUSES: Final[Mapping[int, Callable[[HranaError], Failure]]] = {
    401: unauthorized,
    403: _forbidden,
    404: _no_endpoint,
    405: _no_endpoint,
    413: lambda cause: too_large("a request", cause),
    429: _overloaded,
    503: _overloaded,
}
