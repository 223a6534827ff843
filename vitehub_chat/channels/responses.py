"""Responses: what a platform is told."""

from __future__ import annotations

from vitehub_chat.channels.values import ChannelResponse
from vitehub_chat.conversation import events
from vitehub_chat.errors import (
    ChatBusyError,
    ChatError,
    InputError,
    StateClosedError,
    StateConflictError,
    StateError,
    StateUnavailableError,
)
from vitehub_chat.model.json_text import encode_json

ACCEPTED = ChannelResponse()
"""Without a body: some platforms show it to people."""

RETRY_AFTER_S = 5

_AGAIN = frozenset({409, 429, 503})


def refuse(status: int, code: str, **headers: str) -> ChannelResponse:
    """Return a refusal; one that may succeed later says when."""
    if status in _AGAIN:
        headers["retry-after"] = str(RETRY_AFTER_S)
    body = encode_json({"error": {"code": code}}, "error")
    return ChannelResponse(
        status=status,
        headers={"content-type": "application/json", **headers},
        body=body.encode(),
    )


def refuse_error(error: ChatError) -> ChannelResponse:
    """Return what an error means to a platform; its text stays here."""
    status = _status_of(error)
    if status not in {400, 409, 429}:
        events.turn_failed(error, code=error.code)
    return refuse(status, error.code)


def _status_of(error: ChatError) -> int:
    if isinstance(error, InputError):
        return 400
    if isinstance(error, ChatBusyError):
        return 429 if error.code == "queue_full" else 409
    if isinstance(error, StateUnavailableError | StateClosedError | StateConflictError):
        return 503
    return 413 if isinstance(error, StateError) and error.code == "too_large" else 500
