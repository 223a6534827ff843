"""Payloads: the request of a turn as JSON text, for whoever runs it if its caller cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import attrs

from vitehub_chat.model.clock import in_us
from vitehub_chat.model.json_text import decode_json, encode_json, jsonable
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import HistoryWindow
from vitehub_chat.model.requests import (
    Invoker,
    Replacement,
    RunInfo,
    SessionChoice,
    TurnRequest,
)
from vitehub_chat.model.ui_messages import read_message

_PLAIN = ("user", "meta", "chat_id", "user_key", "is_dm", "session_given", "trigger")


def encode_request(request: TurnRequest, messages: Sequence[Message]) -> str:
    """Return a request with some of its messages as JSON text.

    Values of `context` that are not JSON stay behind: they exist only in this process.

    Raises:
        InputError: A message or a fact of the request is not JSON; the error names where.
    """
    fields: dict[str, Any] = {name: getattr(request, name) for name in _PLAIN}
    return encode_json(
        {
            **fields,
            "messages": [message.to_json() for message in messages],
            "run": None if request.run is None else attrs.asdict(request.run),
            "session": attrs.asdict(request.session),
            "window": _window_to_json(request.window),
            "invoker": None if request.invoker is None else attrs.asdict(request.invoker),
            "timeout": None if request.timeout is None else in_us(request.timeout),
            "reply_to": request.reply_to,
            "replace": None if request.replace is None else attrs.asdict(request.replace),
            "context": {k: v for k, v in request.context.items() if _is_json(v)},
        },
        "input",
    )


def decode_request(text: str) -> TurnRequest:
    """Return the request that `encode_request` wrote down.

    Raises:
        ValueError: The text is none.
    """
    fields: Mapping[str, Any] = decode_json(text)
    run, invoker, timeout = fields["run"], fields["invoker"], fields["timeout"]
    replace = fields.get("replace")
    return TurnRequest(
        messages=tuple(read_message(message) for message in fields["messages"]),
        run=None if run is None else RunInfo(**run),
        session=SessionChoice(**fields["session"]),
        window=_window_from_json(fields["window"]),
        invoker=None if invoker is None else Invoker(**invoker),
        timeout=None if timeout is None else timedelta(microseconds=timeout),
        context=fields["context"],
        reply_to=fields.get("reply_to"),
        replace=None if replace is None else Replacement(**replace),
        **{name: fields[name] for name in _PLAIN},
    )


def _window_to_json(window: HistoryWindow | str | None) -> Any:
    if not isinstance(window, HistoryWindow):
        return window
    age = window.max_age
    return {**attrs.asdict(window), "max_age": None if age is None else in_us(age)}


def _window_from_json(fields: Any) -> Any:
    if not isinstance(fields, Mapping):
        return fields
    age = fields["max_age"]
    max_age = None if age is None else timedelta(microseconds=age)
    return HistoryWindow(**{**fields, "max_age": max_age})


def _is_json(value: object) -> bool:
    return jsonable(value) is value
