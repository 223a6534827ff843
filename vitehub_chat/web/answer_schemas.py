"""Answer schemas: what the routes answer, as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
FLAG: Final[Schema] = {"type": "boolean"}
TIME: Final[Schema] = {"type": "string", "format": "date-time"}


def ref(name: str) -> Schema:
    """Return a reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def or_null(schema: Schema) -> Schema:
    """Return a schema that null fits, too."""
    return {"anyOf": [schema, {"type": "null"}]}


def one_of(*values: str) -> Schema:
    """Return the schema of one of some texts."""
    return {"enum": list(values)}


def many(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def record(required: Mapping[str, Schema], **optional: Schema) -> Schema:
    """Return the schema of an object; those of its members that are not required may be absent."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
    }


_ENTRY = record(
    {"role": TEXT, "kept": FLAG, "reason": TEXT}, message_id=TEXT, seq=COUNT, tokens=COUNT
)
_GIVEN: Mapping[str, Schema] = {
    "summary": or_null(record({"version": COUNT, "through_seq": COUNT})),
    "entries": many(_ENTRY),
    "left_out": COUNT,
    "trimmed": COUNT,
}
_ROLLING = record(
    {"text": TEXT, "created_at": TIME, "through_seq": COUNT, "version": COUNT}, model=TEXT
)
_STORES = ("rows", "summaries", "plans", "values", "entries", "sessions")
_STATUS = one_of("complete", "interrupted", "error", "pending")
_RESULT_STATUS = one_of("complete", "interrupted", "coalesced", "dropped", "filtered", "error")

SCHEMAS: Final[Mapping[str, Schema]] = {
    "Message": {
        **record(
            {"role": TEXT, "parts": many({"type": "object"})},
            id=TEXT,
            metadata={"type": "object"},
            createdAt=TIME,
        ),
        "description": "A UI message of the AI SDK.",
    },
    "ContextBudget": {
        **record(
            {
                "limit": COUNT,
                "used": COUNT,
                "used_pct": {"type": "number"},
                "unit": one_of("tokens", "runes"),
            }
        ),
        "description": "How much of the model's window a call used.",
    },
    "Item": record(
        {"message": ref("Message"), "seq": COUNT, "status": _STATUS, "cursor": TEXT},
        created_at=TIME,
        turn_no=COUNT,
        session_id=TEXT,
        turn_id=TEXT,
    ),
    "HistoryPage": record(
        {
            "items": many(ref("Item")),
            "older_cursor": or_null(TEXT),
            "newer_cursor": or_null(TEXT),
            "at_live_edge": FLAG,
            "next_cursor": or_null(TEXT),
            "generation": COUNT,
            "reset": FLAG,
            "live_edge_seq": COUNT,
        },
        context_budget=ref("ContextBudget"),
    ),
    "Turn": record(
        {
            "turn_no": COUNT,
            "message_id": TEXT,
            "seq": COUNT,
            "preview": TEXT,
            "created_at": TIME,
            "has_reply": FLAG,
        }
    ),
    "Turns": record({"items": many(ref("Turn"))}, next_cursor=TEXT),
    "Window": {
        **record(
            {},
            **_GIVEN,
            turn_id=TEXT,
            session_id=TEXT,
            run_id=TEXT,
            status=_STATUS,
            driver=TEXT,
            model=TEXT,
            profile=TEXT,
            created_at=TIME,
            context_budget=ref("ContextBudget"),
        ),
        "description": "What the model was given in a turn: ids, reasons and sizes, no text.",
    },
    "Summaries": record(
        {
            "rolling": or_null(_ROLLING),
            "manual": or_null(record({"text": TEXT, "created_at": TIME})),
        }
    ),
    "Session": record(
        {"started_at": TIME, "last_message_at": TIME, "message_count": COUNT},
        id=TEXT,
        session_id=TEXT,
        title=TEXT,
        generation=COUNT,
        summary=record(
            {"rolling": or_null({"type": "object"}), "manual": or_null({"type": "object"})}
        ),
        context_budget=ref("ContextBudget"),
    ),
    "Sessions": record({"items": many(ref("Session"))}, next_cursor=TEXT),
    "Erased": record(dict.fromkeys(_STORES, COUNT), notes=many({"type": "object"})),
    "Truncated": record(
        {
            "deleted": COUNT,
            "live_edge_seq": COUNT,
            "generation": COUNT,
            "summary": one_of("kept", "restored", "reset"),
        }
    ),
    "Found": record({"items": many(ref("Hit"))}),
    "Hit": record(
        {
            "message_id": TEXT,
            "seq": COUNT,
            "created_at": TIME,
            "snippet": TEXT,
            "score": {"type": "number"},
        },
        id=TEXT,
        session_id=TEXT,
        title=TEXT,
        role=TEXT,
    ),
    "Stopped": record({"stopped": FLAG}, message_id=TEXT),
    "RunResult": record(
        {"text": TEXT, "status": _RESULT_STATUS, "new_messages": many(ref("Message"))},
        message=ref("Message"),
        finish_reason=TEXT,
        session_id=TEXT,
        reason=TEXT,
        context_budget=ref("ContextBudget"),
    ),
    "Problem": {
        **record(
            {"error": record({"code": TEXT, "message": TEXT}, hint=TEXT, path=TEXT, ref=TEXT)}
        ),
        "description": "A refusal, or a failure before the first byte of the answer.",
    },
}
"""The schemas of the answers by name."""
