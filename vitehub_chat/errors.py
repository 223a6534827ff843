"""Every exception and warning of the package.

::

    ChatError
    ├── ConfigError              a definition, option, URL or environment value is wrong
    ├── InputError               the input of one call is wrong
    ├── ChatBusyError            the conversation is busy and the message was refused
    ├── StateError               the Agent State failed
    │   ├── StateUnavailableError    no answer; see `outcome`
    │   ├── StateClosedError         used before open or after close
    │   ├── StateConflictError       lost lease, stale revision or generation
    │   └── SchemaVersionError       written by a newer release
    ├── CursorError              a page cursor that is not ours
    ├── NotFoundError            unknown, or not the caller's
    ├── MissingDependencyError   an extra is not installed
    └── ContextOverflowError     the model refused the input as too long
    ConfigOverrideWarning (UserWarning)   an explicit option without effect

No message contains a secret, a URL with a token, or the text of a message.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal, Self


class ChatError(Exception):
    """The chat layer could not do what was asked.

    Attributes:
        code: One of `codes`; stable, for programs to match on.
        hint: What to do about it, or None.
    """

    code: str = "internal"
    codes: ClassVar[frozenset[str]] = frozenset({"internal", "turn_failed"})

    def __init__(
        self, message: str | None = None, *, code: str | None = None, hint: str | None = None
    ) -> None:
        if code is not None:
            if code not in self.codes:
                known = ", ".join(sorted(self.codes))
                raise ValueError(f"{type(self).__name__} has no code {code!r}; one of: {known}")
            self.code = code
        self.hint = hint
        super().__init__(message or _first_line(type(self)))

    @property
    def message(self) -> str:
        """The message alone, without path and hint."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class _PathError(ChatError):
    """An error about one value at a dotted path.

    Attributes:
        path: Where the value is, such as `trigger_history.max_messages`, or None.
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        path: str | None = None,
        code: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.path = path

    @classmethod
    def unknown_name(
        cls, name: str, known: Iterable[str], *, path: str | None = None, what: str = "option"
    ) -> Self:
        """Build the error for a name that does not exist, suggesting the nearest known one."""
        names = sorted(known)
        nearest = nearest_name(name, names)
        hint = f"did you mean {nearest!r}?" if nearest else f"known: {', '.join(names) or 'none'}"
        return cls(f"unknown {what} {name!r}", path=path or name, hint=hint)

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.path}: {text}" if self.path else text


class ConfigError(_PathError):
    """A definition, option, URL or environment value is wrong."""

    code = "config_error"
    codes = frozenset({"config_error", "invalid_option", "unauthorized"})


class InputError(_PathError):
    """The input of this call is wrong."""

    code = "invalid_input"
    codes = frozenset(
        {
            "invalid_input",
            "empty_message",
            "no_user_message",
            "untrusted_field",
            "unknown_tool_call",
        }
    )


class ChatBusyError(ChatError):
    """The conversation is busy and the message was not accepted; it may be sent again."""

    code = "chat_busy"
    codes = frozenset({"chat_busy", "queue_full", "timeout", "turn_in_progress"})


class StateError(ChatError):
    """The Agent State failed."""

    code = "state_error"
    codes = frozenset({"state_error", "corrupt", "no_space", "read_only", "too_large"})


class StateUnavailableError(StateError):
    """The Agent State did not answer.

    Attributes:
        outcome: `"not_written"`: nothing was stored. `"unknown"`: repeat with the same ids.
        retryable: Whether the same call may succeed later.
    """

    code = "state_unavailable"
    codes = frozenset({"state_unavailable"})

    def __init__(
        self,
        message: str | None = None,
        *,
        outcome: Literal["not_written", "unknown"] = "not_written",
        retryable: bool = True,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.outcome = outcome
        self.retryable = retryable


class StateClosedError(StateError):
    """The Agent State is not open."""

    code = "state_closed"
    codes = frozenset({"state_closed"})


class StateConflictError(StateError):
    """Somebody else changed this meanwhile; nothing was written."""

    code = "state_conflict"
    codes = frozenset({"state_conflict", "lock_lost"})


class SchemaVersionError(StateError):
    """The Agent State was written by a newer release; it was not touched."""

    code = "schema_version"
    codes = frozenset({"schema_version"})


class CursorError(ChatError):
    """The cursor is not valid here; load the first page again."""

    code = "invalid_cursor"
    codes = frozenset({"invalid_cursor"})


class NotFoundError(ChatError):
    """There is nothing of that name here."""

    code = "not_found"
    codes = frozenset({"not_found"})


class MissingDependencyError(ChatError):
    """An optional dependency is not installed.

    Attributes:
        extra: The extra of `vitehub-chat` that brings it.
    """

    code = "missing_dependency"
    codes = frozenset({"missing_dependency"})

    def __init__(self, what: str, *, extra: str) -> None:
        super().__init__(
            f"{what} needs the extra {extra!r}", hint=f'pip install "vitehub-chat[{extra}]"'
        )
        self.extra = extra


class ContextOverflowError(ChatError):
    """The model refused the input as too long.

    Attributes:
        reported: The size that the model reported, in tokens, or None.
    """

    code = "context_overflow"
    codes = frozenset({"context_overflow"})

    def __init__(
        self,
        message: str | None = None,
        *,
        reported: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.reported = reported


class ConfigOverrideWarning(UserWarning):
    """An option was given explicitly and has no effect beside another one."""


def nearest_name(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that looks most like `name`, or None if none is close.

    Case and underscores do not count, so `maxmessage` finds `max_messages`.
    """
    folded = {item.replace("_", "").replace("-", "").casefold(): item for item in known}
    probe = name.replace("_", "").replace("-", "").casefold()
    close = difflib.get_close_matches(probe, list(folded), n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def _first_line(kind: type[ChatError]) -> str:
    return (kind.__doc__ or kind.__name__).strip().splitlines()[0]
