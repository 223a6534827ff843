"""Continuing: assistant messages that come back with tool outputs and decisions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from vitehub_chat.errors import InputError
from vitehub_chat.model.json_text import encode_json
from vitehub_chat.model.messages import Message

_ENDS = frozenset({"output-available", "output-error", "output-denied"})
_OPEN = frozenset({"input-available", "approval-requested", "approval-responded"})


def digest_settled(message: Message) -> str:
    """Return a digest of what is settled in a message; another output gives another one."""
    text = encode_json(list(_settled(message).items()), "messages[-1].parts")
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def brings_nothing_new(message: Message, stored: Message) -> bool:
    """Tell whether everything that is settled in a message is so in the stored one already.

    The first output of a call counts, and the first decision about it.
    """
    calls = dict(_calls(stored))
    return not any(
        call_id not in calls or _is_news(calls[call_id], facts)
        for call_id, facts in _settled(message).items()
    )


def brings_decisions(message: Message) -> bool:
    """Tell whether a message decides about calls of tools."""
    return any("approval" in facts for facts in _settled(message).values())


def is_approved(part: Mapping[str, Any]) -> bool:
    """Tell whether a part is a call that may run and has not."""
    return part.get("state") == "approval-responded" and _approval_of(part).get("approved") is True


def call_ids(message: Message) -> frozenset[str]:
    """Return the ids of the calls that a message has."""
    return frozenset(call_id for call_id, _ in _calls(message))


def call_ids_settled(message: Message) -> frozenset[str]:
    """Return the ids of the calls that have an output or a decision in a message."""
    return frozenset(_settled(message))


def merge_settled(stored: Message, sent: Message) -> Message:
    """Return a stored answer with the outputs and decisions of a client's version of it.

    Only calls that wait for something change; all else of the client's version is ignored.

    Raises:
        InputError: An output or a decision is for a call that the answer does not have, or that
            does not wait for it (`unknown_tool_call`).
    """
    settled = _settled(sent)
    if settled.keys() - {call_id for call_id, _ in _calls(stored)}:
        raise _refuse("settles a call that the stored message does not have")
    parts: list[Any] = []
    for index, part in enumerate(stored.to_json()["parts"]):
        facts = settled.get(_call_id(part, index) or "")
        is_news = facts is not None and _is_news(part, facts)
        parts.append(_with_facts(part, facts) if facts is not None and is_news else part)
    return attrs.evolve(stored, parts=tuple(parts))


def _calls(message: Message) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for index, part in enumerate(message.to_json()["parts"]):
        call_id = _call_id(part, index)
        if call_id is not None:
            yield call_id, part


def _call_id(part: Mapping[str, Any], index: int) -> str | None:
    """Return the id of the call that a part is about, or None if it is about none."""
    kind = part.get("type")
    if not isinstance(kind, str) or not (kind == "dynamic-tool" or kind.startswith("tool-")):
        return None
    for name in ("toolCallId", "id"):
        call_id = part.get(name)
        if isinstance(call_id, str) and call_id:
            return call_id
    return f"{kind}-{index + 1}"


def _settled(message: Message) -> dict[str, dict[str, Any]]:
    """Return what is settled in a message, by call id, in one form whatever else its parts say."""
    found = {call_id: _facts(part) for call_id, part in _calls(message)}
    return {call_id: facts for call_id, facts in found.items() if facts}


def _facts(part: Mapping[str, Any]) -> dict[str, Any]:
    state, error = part.get("state"), part.get("errorText")
    facts: dict[str, Any] = {}
    if state == "output-denied":
        facts["state"] = state
    elif state == "output-error" or (state not in _ENDS and isinstance(error, str)):
        facts |= {"state": "output-error", "errorText": str(error or "failed")}
    elif state == "output-available" or "output" in part:
        facts |= {"state": "output-available", "output": part.get("output")}
    decision = _decision(part.get("approval"))
    if decision is not None:
        facts = {"state": "approval-responded", **facts, "approval": decision}
    return facts


def _decision(approval: object) -> dict[str, Any] | None:
    if not isinstance(approval, Mapping) or not isinstance(approval.get("approved"), bool):
        return None
    names = ("id", "approved", "reason")
    return {name: approval[name] for name in names if isinstance(approval.get(name), str | bool)}


def _is_news(part: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Tell whether something is settled for a call that still waits for it."""
    state = part.get("state")
    if state == "approval-responded":
        return facts["state"] in _ENDS and is_approved(part)
    return state in _OPEN


def _with_facts(part: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of an open call with what is settled about it."""
    state, decision = part["state"], facts.get("approval")
    if state == "input-available" and facts["state"] == "approval-responded":
        raise _refuse("decides about a call that waits for no decision")
    if state != "approval-requested":
        return {**part, **{name: fact for name, fact in facts.items() if name != "approval"}}
    if decision is None or decision.get("id") != _approval_of(part).get("id"):
        raise _refuse("settles a call that waits for another decision")
    if facts["state"] == "output-available" and not decision["approved"]:
        raise _refuse("has an output of a call that it denies")
    return {**part, **facts}


def _approval_of(part: Mapping[str, Any]) -> Mapping[str, Any]:
    approval = part.get("approval")
    return approval if isinstance(approval, Mapping) else {}


def _refuse(problem: str) -> InputError:
    return InputError(
        problem, path="messages[-1].parts", code="unknown_tool_call", hint="load the history again"
    )
