"""Overflow: recognising that a model refused a call as too long."""

from __future__ import annotations

import re
from typing import Final

from vitehub_chat.errors import ContextOverflowError

_CODES: Final = frozenset({"context_length_exceeded", "context_window_exceeded"})
_STATUSES: Final = frozenset({400, 413, 422})
_REFUSALS: Final = re.compile(
    r"maximum context length|context[ _]length[ _]exceeded|context window|prompt is too long"
    r"|exceed(?:s|ed)? (?:the )?context limit|input token count .{0,40}exceeds"
    r"|input is too long for (?:the )?requested model|too large for model with \d+ maximum context"
    r"|reduce the length of the (?:messages|prompt)",
    re.IGNORECASE,
)
_SIZES: Final = (
    r"resulted in (?:about )?([\d,]+) tokens",
    r"too long: ([\d,]+) tokens",
    r"token count (?:of |is )?\(?([\d,]+)",
    r"requested ([\d,]+) tokens",
    r"prompt contains ([\d,]+) tokens",
)
_MOST_TEXT: Final = 10_000


def find_overflow(error: BaseException) -> ContextOverflowError | None:
    """Return that a model refused a call as too long, or None for any other error.

    Errors of the providers' own clients are told by their code or status and their words.
    """
    if isinstance(error, ContextOverflowError):
        return error
    if not _is_refusal(error):
        return None
    return ContextOverflowError(reported=reported_tokens(str(error)[:_MOST_TEXT]))


def reported_tokens(text: str) -> int | None:
    """Return how large a call was by the words of its refusal, or None if they do not say."""
    for pattern in _SIZES:
        if found := re.search(pattern, text, re.IGNORECASE):
            return int(found[1].replace(",", ""))
    return None


def _is_refusal(error: BaseException) -> bool:
    if getattr(error, "code", None) in _CODES:
        return True
    status = getattr(error, "status_code", None)
    if status is None:
        status = getattr(error, "code", None)  # google-genai
    is_bedrock = type(error).__name__ == "ValidationException"
    may_be = is_bedrock or (isinstance(status, int) and status in _STATUSES)
    return may_be and _REFUSALS.search(str(error)[:_MOST_TEXT]) is not None
