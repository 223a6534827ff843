"""Problems: what a client is told instead of an answer, and with which status."""

from __future__ import annotations

import attrs
from starlette.responses import Response

from vitehub_chat.conversation import events
from vitehub_chat.errors import (
    ChatBusyError,
    ChatError,
    ConfigError,
    CursorError,
    InputError,
    MissingDependencyError,
    NotFoundError,
    SchemaVersionError,
    StateClosedError,
    StateConflictError,
    StateError,
    StateUnavailableError,
)
from vitehub_chat.model.ids import new_id
from vitehub_chat.model.json_text import show_json

RETRY_AFTER_S = 2
INTERNAL_MESSAGE = "Something went wrong here. Tell whoever runs this service the ref."

_BUSY = {"chat_busy": 409, "turn_in_progress": 409, "queue_full": 429, "timeout": 504}
_AGAIN = frozenset({"chat_busy", "turn_in_progress", "queue_full"})
_INTERNAL = 500


@attrs.frozen(kw_only=True)
class Problem:
    """A refusal or a failure.

    Attributes:
        status: The HTTP status.
        code: One of the codes of that status.
        message: What is wrong, for people.
        hint: What to do about it, or None.
        path: Which value is wrong, or None.
        ref: What the log has, too, or None.
    """

    status: int
    code: str
    message: str
    hint: str | None = None
    path: str | None = None
    ref: str | None = None

    @property
    def text(self) -> str:
        """What people are told where there is one text, with the ref if the log has it."""
        return self.message if self.ref is None else f"{self.message} (ref {self.ref})"

    def respond(self) -> Response:
        """Return it as a response; one that may succeed later says when."""
        fields = attrs.asdict(self)
        del fields["status"]
        facts = {name: fact for name, fact in fields.items() if fact is not None}
        headers = {"cache-control": "no-store"}
        if self.code in _AGAIN or self.status == 503:
            headers["retry-after"] = str(RETRY_AFTER_S)
        return json_response({"error": facts}, status=self.status, headers=headers)


class Refused(Exception):  # noqa: N818 - a way out, not a fault
    """A request ends with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


def refuse(status: int, code: str, message: str) -> Refused:
    """Return what ends a request with a problem, to be raised."""
    return Refused(Problem(status=status, code=code, message=message))


def problem_of(error: BaseException, *, message_id: str | None = None) -> Problem:
    """Return what an error means to a client; what is wrong on this side is told in the log.

    `message_id` is the message whose turn it ended, for the log.
    """
    if isinstance(error, Refused):
        return error.problem
    status, code = _status_of(error)
    if status == _INTERNAL or not isinstance(error, ChatError):
        return internal_problem(error, code, message_id=message_id)
    return Problem(
        status=status,
        code=code,
        message=error.message,
        hint=error.hint,
        path=getattr(error, "path", None),
    )


def internal_problem(
    error: BaseException,
    code: str,
    text: str = INTERNAL_MESSAGE,
    *,
    message_id: str | None = None,
) -> Problem:
    """Return what a client is told of something wrong on this side: a sentence and a ref."""
    ref = new_id()
    events.turn_failed(error, code=code, ref=ref, message_id=message_id)
    return Problem(status=_INTERNAL, code=code, message=text, ref=ref)


def json_response(
    value: object, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return a JSON object as a response that nobody keeps."""
    kept = {"cache-control": "no-store", "x-content-type-options": "nosniff", **(headers or {})}
    body = show_json(value, "response").encode()
    return Response(body, status_code=status, headers=kept, media_type="application/json")


def _status_of(error: BaseException) -> tuple[int, str]:
    if isinstance(error, InputError | CursorError):
        return 400, error.code
    if isinstance(error, ConfigError):
        return (400 if error.code == "invalid_option" else _INTERNAL), error.code
    if isinstance(error, NotFoundError):
        return 404, error.code
    if isinstance(error, ChatBusyError):
        return _BUSY[error.code], error.code
    if isinstance(error, StateError):
        return _status_of_state(error), error.code
    if isinstance(error, MissingDependencyError):
        return _INTERNAL, error.code
    return _INTERNAL, "internal"


def _status_of_state(error: StateError) -> int:
    if isinstance(error, StateConflictError):
        return 409
    if isinstance(error, StateUnavailableError | StateClosedError):
        return 503
    if isinstance(error, SchemaVersionError):
        return _INTERNAL
    return 413 if error.code == "too_large" else _INTERNAL
