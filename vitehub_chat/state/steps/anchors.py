"""Anchors: where the summary of a session ends, for reading what comes after it."""

from __future__ import annotations

import attrs

from vitehub_chat.errors import StateError
from vitehub_chat.model.rolling import Rolling
from vitehub_chat.state.document_codec import decode_rolling
from vitehub_chat.state.records import RowRecord, SessionRecord
from vitehub_chat.state.tables import RowQuery, Transaction


def rolling_of(tx: Transaction, session: SessionRecord, now: int) -> Rolling:
    """Return the rolling state of a session.

    Raises:
        StateError: It cannot be read (`corrupt`).
    """
    found = tx.documents.newest(session.conversation, "rolling", session.key, now)
    return decode_rolling(found, session)


def readable_rolling(tx: Transaction, session_key: int, now: int) -> Rolling | None:
    """Return the rolling state of a session; None if there is no session, or it is unreadable."""
    session = tx.sessions.get(session_key)
    if session is None:
        return None
    try:
        return rolling_of(tx, session, now)
    except StateError:
        return None


def system_rows(tx: Transaction, query: RowQuery, rolling: Rolling) -> list[RowRecord]:
    """Return the system messages before the anchor that are still sent, ascending."""
    found: list[RowRecord] = []
    for seq in rolling.system_seqs:
        one = attrs.evolve(query, above=seq - 1, below=seq + 1, order="ascending", limit=1)
        found.extend(tx.rows.select(one))
    return found
