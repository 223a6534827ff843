"""Trigger input: from the mapping given to `chat.message` to the request of one turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from vitehub_chat.config.chat_model import TriggerHistoryModel
from vitehub_chat.config.chat_options import lower_window
from vitehub_chat.config.durations import optional_term
from vitehub_chat.config.lowering import read_options, refuse
from vitehub_chat.config.trigger_model import (
    InvokerModel,
    ReplaceModel,
    RunModel,
    SessionModel,
    TriggerModel,
)
from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.model.keys import MAX_ID_LENGTH, check_id
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import check_not_empty
from vitehub_chat.model.policies import HistoryWindow
from vitehub_chat.model.requests import (
    Invoker,
    Replacement,
    RunInfo,
    SessionChoice,
    TurnRequest,
)
from vitehub_chat.model.ui_messages import read_messages


def parse_chat_message(input: Mapping[str, object], /) -> TurnRequest:
    """Check the input of one turn.

    Takes time in proportion to the number of messages; their parts are not looked into, but for
    the current one.

    Raises:
        InputError: The first thing that is wrong, with its path.
        ConfigError: `trigger_history` is wrong (`invalid_option`).
    """
    given = read_options(TriggerModel, input, raising=InputError)
    window = _read_window(given.trigger_history)
    messages = _read_messages(given.messages)
    return TurnRequest(
        messages=messages,
        run=None if given.run is None else _lower_run(given.run),
        session=SessionChoice() if given.session is None else _lower_session(given.session),
        session_given=given.session is not None,
        window=window,
        user=given.user,
        meta=given.meta,
        invoker=None if given.invoker is None else _lower_invoker(given.invoker),
        timeout=optional_term(given.timeout_ms),
        context={} if given.context is None else given.context,
        replace=None if given.replace is None else _lower_replace(given.replace),
        chat_id=_check_optional_id(given.chat_id, "chat_id"),
        user_key=_check_optional_id(given.user_key, "user_key"),
    )


def _read_messages(given: object) -> tuple[Message, ...]:
    if not isinstance(given, list | tuple):
        raise refuse(given, "a non-empty list of messages", path="messages", raising=InputError)
    if not given:
        raise InputError("must be a non-empty list of messages", path="messages")
    messages = read_messages(given)
    check_not_empty(messages[-1], f"messages[{len(messages) - 1}]")
    return messages


def _read_window(given: object) -> HistoryWindow | Literal["none"] | None:
    if given is None:
        return None
    if isinstance(given, str) and given == "none":
        return "none"
    try:
        if not isinstance(given, Mapping):
            raise refuse(given, "'none' or a mapping", path="trigger_history")
        return lower_window(read_options(TriggerHistoryModel, given, path="trigger_history"))
    except ConfigError as exc:
        exc.code = "invalid_option"
        raise


def _lower_run(given: RunModel) -> RunInfo:
    return RunInfo(
        tenant_id=_check_optional_id(given.tenant_id, "run.tenant_id"),
        channel_id=_check_optional_id(given.channel_id, "run.channel_id"),
        thread_id=_check_optional_id(given.thread_id, "run.thread_id"),
        run_id=_check_optional_id(given.run_id, "run.run_id"),
        message_id=_check_optional_id(given.message_id, "run.message_id") or None,
        origin=given.origin,
        annotations=_check_annotations(given.annotations or {}),
    )


def _check_annotations(given: Mapping[Any, object]) -> Mapping[str, str]:
    annotations: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str):
            wrong = value if isinstance(name, str) else name
            raise refuse(
                wrong, "a mapping of text to text", path="run.annotations", raising=InputError
            )
        annotations[name] = value
    return annotations


def _lower_session(given: SessionModel) -> SessionChoice:
    return SessionChoice(action=given.action or "continue", id=_read_session_id(given.id))


def _read_session_id(given: object) -> str | None:
    """Return a session id as text: an integer as its decimal digits, empty text as absent."""
    if isinstance(given, int) and not isinstance(given, bool):
        if given.bit_length() > 3 * MAX_ID_LENGTH:
            raise InputError("has too many digits", path="session.id")
        return str(int(given))
    if given is None:
        return None
    if not isinstance(given, str):
        raise refuse(given, "text or an integer", path="session.id", raising=InputError)
    return check_id(given, "session.id") or None


def _lower_invoker(given: InvokerModel) -> Invoker:
    return Invoker(id=given.id, kind=given.kind, label=given.label, meta=given.meta or {})


def _lower_replace(given: ReplaceModel) -> Replacement:
    message_id = check_id(given.message_id, "replace.message_id")
    return Replacement(kind=given.kind, message_id=message_id)


def _check_optional_id(given: str | None, path: str) -> str | None:
    return None if given is None else check_id(given, path)
