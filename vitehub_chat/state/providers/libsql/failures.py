"""Failures: what an error of the server or of the network means, and who may try again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import copy
from typing import Final, Literal

from vitehub_chat.errors import (
    ChatError,
    ConfigError,
    StateConflictError,
    StateError,
    StateUnavailableError,
)

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


class AttemptError(Exception):
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
        self.repeat: Repeat = repeat
        self.at_once = at_once
        self.timed_out = timed_out

    def copy(self) -> AttemptError:
        """Return the same failure for somebody else who waits for the same request."""
        return AttemptError(
            copy(self.error),
            self.repeat,
            self.error.__cause__,
            at_once=self.at_once,
            timed_out=self.timed_out,
        )


def unavailable(
    message: str,
    repeat: Repeat,
    cause: BaseException | None = None,
    *,
    at_once: bool = False,
    timed_out: bool = False,
) -> AttemptError:
    """Return the failure of an attempt that got no answer, or none that says what was done."""
    outcome: Literal["unknown", "not_written"] = (
        "unknown" if repeat == "idempotent" else "not_written"
    )
    error = StateUnavailableError(message, outcome=outcome)
    return AttemptError(error, repeat, cause, at_once=at_once, timed_out=timed_out)


def from_code(code: str, message: str) -> AttemptError:
    """Return the failure that an error in an answer means; the transaction was rolled back."""
    cause = HranaError(code, message)
    if _STREAM.search(code) or (not code and _STREAM.search(message)):
        return unavailable("the server lost the stream", "idempotent", cause, at_once=True)
    for prefix, make in _CODES.items():
        if code.startswith(prefix):
            return make(cause)
    return AttemptError(StateError(f"the server refused a statement: {cause.code}"), "never", cause)


def from_status(status: int, text: str) -> AttemptError:
    """Return the failure that an HTTP status other than 200 means."""
    cause = HranaError(f"HTTP_{status}", text)
    if status in {400, 404, 410} and is_about_stream(text):
        # A stream is looked up before anything of the request is done.
        return unavailable("the server lost the stream", "always", cause, at_once=True)
    if status in _STATUSES:
        return _STATUSES[status](cause)
    if status >= 500 or status == 408:
        return unavailable(f"the server failed with status {status}", "idempotent", cause)
    if status < 400:
        error = ConfigError(
            "the server refers to another address", path="state.url", hint="give that one"
        )
        return AttemptError(error, "never", cause)
    return AttemptError(
        StateError(f"the server refused a request: status {status}"), "never", cause
    )


def is_about_stream(text: str) -> bool:
    """Tell whether an answer says that the stream is expired, invalid or not found."""
    return _STREAM.search(text) is not None


def is_long_answer(failure: AttemptError) -> bool:
    """Tell whether a transaction failed only because its answer was too large."""
    return _code_of(failure.error) == "RESPONSE_TOO_LARGE"


def is_no_endpoint(error: ChatError) -> bool:
    """Tell whether a server has neither of the versions that it was asked for."""
    return isinstance(error, ConfigError) and _code_of(error) in {"HTTP_404", "HTTP_405"}


def too_large(what: str, hint: str, cause: BaseException | None = None) -> AttemptError:
    """Return the failure for what is above a limit of size."""
    error = StateError(f"{what} is larger than the server allows", code="too_large", hint=hint)
    return AttemptError(error, "never", cause)


def _code_of(error: ChatError) -> str | None:
    return error.__cause__.code if isinstance(error.__cause__, HranaError) else None


def unauthorized(cause: BaseException | None = None) -> AttemptError:
    """Return the failure for a token that is wrong, expired or missing."""
    error = ConfigError(
        "the server does not accept the token, or wants one",
        path="state.auth_token",
        code="unauthorized",
        hint="set auth_token or auth_token_env to a token that is valid for this database",
    )
    return AttemptError(error, "never", cause)


def _forbidden(cause: HranaError) -> AttemptError:
    return AttemptError(
        StateError(
            "the server does not allow this to the token",
            code="read_only",
            hint="use a token that may read and write",
        ),
        "never",
        cause,
    )


def _no_endpoint(cause: HranaError) -> AttemptError:
    error = ConfigError(
        "no Hrana over HTTP, version 3 or 2, at this address",
        path="state.url",
        hint="check host, port and base path; version 1 alone needs the extra libsql-client",
    )
    return AttemptError(error, "never", cause)


def _busy(cause: HranaError) -> AttemptError:
    return unavailable("somebody else kept writing to the database", "always", cause)


def _overloaded(cause: HranaError) -> AttemptError:
    return unavailable("the server has too much to do", "always", cause)


def _constraint(cause: HranaError) -> AttemptError:
    return AttemptError(StateConflictError("a constraint refused a statement"), "never", cause)


def _plain(message: str, code: str) -> Callable[[HranaError], AttemptError]:
    return lambda cause: AttemptError(StateError(message, code=code), "never", cause)


_CODES: Final[Mapping[str, Callable[[HranaError], AttemptError]]] = {
    "SQLITE_BUSY": _busy,
    "SQLITE_LOCKED": _busy,
    "SQLITE_PROTOCOL": _busy,
    "TRANSACTION_TIMEOUT": _busy,
    "TRANSACTION_BUSY": _busy,
    "SQLITE_CONSTRAINT": _constraint,
    "SQLITE_TOOBIG": lambda cause: too_large("a value", "store less in one message", cause),
    "RESPONSE_TOO_LARGE": lambda cause: too_large("an answer", "ask for fewer messages", cause),
    "SQLITE_FULL": _plain("there is no space left at the server", "no_space"),
    "SQLITE_READONLY": _plain("the database cannot be written", "read_only"),
    "SQLITE_AUTH": _forbidden,
    "SQLITE_CORRUPT": _plain("the database is damaged", "corrupt"),
    "SQLITE_NOTADB": _plain("the database is damaged", "corrupt"),
    "BLOCKED": _forbidden,
    "AUTH_": unauthorized,
}

_STATUSES: Final[Mapping[int, Callable[[HranaError], AttemptError]]] = {
    401: unauthorized,
    403: _forbidden,
    404: _no_endpoint,
    405: _no_endpoint,
    413: lambda cause: too_large("a request", "store fewer messages at once", cause),
    429: _overloaded,
    503: _overloaded,
}
