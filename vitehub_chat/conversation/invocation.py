"""Invocation: on whose behalf a turn runs, and what its driver is told about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vitehub_chat.model.messages import Message, format_time
from vitehub_chat.model.requests import Invoker, RunInfo, TurnRequest

_ID_KEYS = ("id", "sub", "email", "username")
_META_KEYS = ("id", "sub", "email", "username", "name", "customer")
_LABEL_KEYS = ("name", "username", "email")
_OURS = frozenset({"triggered_by", "triggeredBy", "channel.sent_at", "channel.sentAt"})
SESSION_LABEL = "chat.session_id"
PLACEHOLDER = "chat.placeholder"
COALESCED = "chat.coalesced_ids"


def resolve_invoker(request: TurnRequest) -> Invoker | None:
    """Return on whose behalf a turn runs, or None if nothing says so.

    An explicit invoker wins and nothing is merged into it. Else the user makes one; further facts
    alone make none.
    """
    if request.invoker is not None:
        return _labelled(request.invoker)
    user, extra = request.user or {}, request.meta or {}
    user_id = next((found for key in _ID_KEYS if (found := _fact(user, key))), None)
    if user_id is None:
        return None
    origin = None if request.run is None else request.run.origin
    meta: dict[str, Any] = {key: text for key in _META_KEYS if (text := _fact(user, key))}
    meta.update(extra)
    return _labelled(
        Invoker(
            id=f"{origin}:{user_id}" if origin else user_id,
            kind="chat",
            meta=meta,
            email=_email(meta.get("email")),
        )
    )


def describe_run(request: TurnRequest, invoker: Invoker | None) -> RunInfo | None:
    """Return the run with our annotations in place of the caller's of the same names."""
    if request.run is None:
        return None
    annotations = {k: v for k, v in request.run.annotations.items() if k not in _OURS}
    if invoker is not None and invoker.label is not None:
        annotations["triggered_by"] = invoker.label
    if request.current.created_at is not None:
        annotations["channel.sent_at"] = format_time(request.current.created_at)
    return attrs.evolve(request.run, annotations=annotations)


def build_context(
    request: TurnRequest,
    invoker: Invoker | None,
    run: RunInfo | None,
    session_id: str | None,
    coalesced_ids: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return the values for the driver: the caller's, ours over them."""
    message = _describe(request.current)
    chat: dict[str, Any] = {"message": message}
    if request.session_given:
        choice = {"action": request.session.action, "id": request.session.id}
        chat["session"] = {key: value for key, value in choice.items() if value is not None}
    if request.meta is not None:
        chat["meta"] = dict(request.meta)
    if request.user is not None:
        chat["user"] = dict(request.user)
    context = dict(request.context)
    label = _session_label(context, run, session_id)
    if label is not None:
        context[SESSION_LABEL] = label
    if invoker is not None:
        context["invoker"] = invoker
    context["chat"] = chat
    context["channel"] = chat if run is None else {**chat, "run": run}
    context["message"] = message
    if coalesced_ids:
        context[COALESCED] = list(coalesced_ids)
    return context


def _session_label(
    context: Mapping[str, Any], run: RunInfo | None, session_id: str | None
) -> str | None:
    """Return the label of the session; it names a session to people and is no storage key."""
    for key in (SESSION_LABEL, "chat.sessionId"):
        given = context.get(key)
        if isinstance(given, str) and given:
            return given
    thread = None if run is None else run.thread_id or run.run_id
    if thread is None:
        return None
    return thread if session_id is None else f"{thread}:chat-session:{session_id}"


def _describe(message: Message) -> dict[str, Any]:
    described: dict[str, Any] = {} if message.id is None else {"id": message.id}
    if message.metadata:
        described["metadata"] = message.metadata
    described["text"] = message.text
    return described


def _labelled(invoker: Invoker) -> Invoker:
    email = invoker.email or _email(invoker.meta.get("email"))
    found = (_fact(invoker.meta, key) for key in _LABEL_KEYS)
    label = invoker.label or next((text for text in found if text), None) or invoker.id
    return attrs.evolve(invoker, label=label, email=email)


def _fact(facts: Mapping[str, Any], key: str) -> str | None:
    """Return a fact as trimmed text, an int in decimal; None for blank and for anything else."""
    value = facts.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return (value.strip() or None) if isinstance(value, str) else None


def _email(value: object) -> Mapping[str, str] | None:
    if not isinstance(value, str) or "@" not in value:
        return None
    address = value.strip()
    return {"address": address, "domain": address.rpartition("@")[2]}
