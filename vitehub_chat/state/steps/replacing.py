"""Replacing: one stored message is changed in its place."""

from __future__ import annotations

import attrs

from vitehub_chat.errors import ChatBusyError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import Row
from vitehub_chat.state.codec import decode_row, encode_body, encode_extra
from vitehub_chat.state.steps.scopes import find_message, find_scope
from vitehub_chat.state.steps.visible import is_growing
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import NewRow


def replace_message(
    tx: Transaction, key: ConversationKey, session_id: str | None, row: NewRow, now: int
) -> Row:
    """Carry out `TranscriptStore.replace`."""
    scope = find_scope(tx, key, session_id)
    stored = find_message(tx, scope, row.message.id or "", now)
    if is_growing(tx, stored, now):
        raise ChatBusyError("the answer is still being written", code="turn_in_progress")
    changed = attrs.evolve(
        stored,
        role=row.message.role,
        status=row.status,
        is_shown=row.is_shown,
        body=encode_body(row.message),
        extra=encode_extra(row),
        fence_key=None,
        fence_token=None,
    )
    tx.rows.replace(changed)
    return decode_row(changed)
