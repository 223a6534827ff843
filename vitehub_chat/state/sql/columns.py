"""Columns: records as a driver takes and returns them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vitehub_chat.state.records import (
    AuthoredRow,
    ConversationRecord,
    DocumentRecord,
    EntryRecord,
    LockRecord,
    RowRecord,
    SessionRecord,
    SummaryRecord,
)
from vitehub_chat.state.seeking import search_text_of
from vitehub_chat.state.sql.driver import Value
from vitehub_chat.state.sql.mapping import Records

AUTHORED: Final = Records(AuthoredRow)
LOCKS: Final = Records(LockRecord)
ENTRIES: Final = Records(EntryRecord, facts=("starts_session", "coalesces"))
CONVERSATIONS: Final = Records(ConversationRecord)
SESSIONS: Final = Records(SessionRecord, facts=("began_by_new",))
ROWS: Final = Records(RowRecord, facts=("is_shown",))
SUMMARIES: Final = Records(SummaryRecord)
DOCUMENTS: Final = Records(DocumentRecord)

SEQ_BITS: Final = 32
"""How many bits of the number of a row are its place in the conversation."""


def values_of(records: Records[Any], record: object) -> dict[str, Value]:
    """Return the fields of a record by name, facts as numbers."""
    return as_values(records.values_of(record))


def values_of_row(row: RowRecord, *, is_searched: bool) -> dict[str, Any]:
    """Return what is written of a row, with its text for search if that is kept."""
    return {
        **ROWS.values_of(row),
        "id": row_id(row.conversation_key, row.seq),
        "search_text": search_text_of(row) if is_searched else None,
    }


def as_values(fields: Mapping[str, Any]) -> dict[str, Value]:
    """Return values with facts as numbers."""
    return {
        name: int(value) if isinstance(value, bool) else value for name, value in fields.items()
    }


def row_id(conversation_key: int, seq: int) -> int:
    """Return the number of a row in the table."""
    return (conversation_key << SEQ_BITS) + seq
