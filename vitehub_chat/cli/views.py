"""Views: results, pages and messages, as JSON and as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from vitehub_chat.cli.text import json_line, safe_line, safe_text, shorten
from vitehub_chat.conversation import as_json
from vitehub_chat.model.hits import SearchHit
from vitehub_chat.model.json_text import jsonable
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message, format_time
from vitehub_chat.model.parts import Part, part_to_json
from vitehub_chat.model.requests import RunInfo
from vitehub_chat.model.results import PreparedInvocation, RunResult, SelectionEntry
from vitehub_chat.model.rows import Row, SessionInfo

_NOT_SHOWN = frozenset({"step-start"})
"""Parts that mean nothing to people."""


def message_to_json(message: Message) -> dict[str, Any]:
    """Return a message as JSON, whatever its tools gave."""
    found: dict[str, Any] = jsonable(message.to_json())
    return found


def entry_to_json(entry: SelectionEntry) -> dict[str, Any]:
    """Return what became of a message."""
    return present(attrs.asdict(entry))


def prepared_to_json(prepared: PreparedInvocation) -> dict[str, Any]:
    """Return what a driver would get, without the values of the context."""
    budget = prepared.context_budget
    return present(
        {
            "session_id": prepared.session_id,
            "run": run_to_json(prepared.run),
            "system": prepared.system,
            "messages": [message_to_json(message) for message in prepared.messages],
            "selection": [entry_to_json(entry) for entry in prepared.selection],
            "context_budget": None if budget is None else budget.to_json(),
        }
    )


def result_to_json(result: RunResult) -> dict[str, Any]:
    """Return what came of a turn."""
    budget = result.context_budget
    return present(
        {
            "text": result.text,
            "status": result.status,
            "reason": result.reason,
            "finish_reason": result.finish_reason,
            "session_id": result.session_id,
            "run": run_to_json(result.run),
            "message": None if result.message is None else message_to_json(result.message),
            "new_messages": [message_to_json(message) for message in result.new_messages],
            "context_budget": None if budget is None else budget.to_json(),
        }
    )


def session_to_json(session: SessionInfo) -> dict[str, Any]:
    """Return one session of a list and its place."""
    return {**as_json.session_to_json(session), "conversation": _key_to_json(session.conversation)}


def hit_to_json(hit: SearchHit) -> dict[str, Any]:
    """Return what a search found and its place."""
    return {**as_json.hit_to_json(hit), "conversation": _key_to_json(hit.conversation)}


def run_to_json(run: RunInfo | None) -> dict[str, Any] | None:
    """Return where a message came from, or None."""
    return None if run is None else {k: v for k, v in present(attrs.asdict(run)).items() if v != {}}


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def _key_to_json(key: ConversationKey) -> dict[str, Any]:
    return present(attrs.asdict(key))


def describe_key(key: ConversationKey) -> str:
    """Return a conversation in one line."""
    parts = attrs.asdict(key)
    return ", ".join(f"{name} {part!r}" for name, part in parts.items() if part is not None)


def message_lines(message: Message, most: int | None) -> Iterator[str]:
    """Yield the parts of a message as safe lines, indented so that none looks like ours.

    `most` is how many characters of a part are shown, None is all.
    """
    for part in message.parts:
        text = _part_text(part)
        if text is None:
            continue
        for line in safe_text(text if most is None else shorten(text, most)).split("\n"):
            yield f"    {line}".rstrip()


def row_lines(rows: Iterable[Row], most: int | None) -> Iterator[str]:
    """Yield stored rows as safe lines."""
    for row in rows:
        facts = [f"#{row.seq}", row.message.role, format_time(_time_of(row))]
        if row.session_id is not None:
            facts.append(f"session {row.session_id!r}")
        if row.status != "complete":
            facts.append(row.status)
        yield safe_line("  ".join(facts))
        yield from message_lines(row.message, most)


def _time_of(row: Row) -> Any:
    return row.said_at


def _part_text(part: Part) -> str | None:
    """Return a part as text: its text, or its type and fields."""
    fields = jsonable(part_to_json(part))
    kind = fields.get("type")
    if kind == "text" and isinstance(fields.get("text"), str):
        return str(fields["text"])
    if kind in _NOT_SHOWN:
        return None
    rest = {name: value for name, value in fields.items() if name != "type"}
    return f"[{kind}] {json_line(rest)}"
