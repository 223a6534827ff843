"""Aside: rows that left the history and are kept, invisible, as documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

import attrs

from vitehub_chat.errors import StateError
from vitehub_chat.model.json_text import encode_json
from vitehub_chat.state.records import DocumentRecord, RowRecord
from vitehub_chat.state.tables import DocumentQuery, RowQuery, Transaction

Reason = Literal["hidden", "superseded"]


def put_aside(
    tx: Transaction, home: str, rows: Sequence[RowRecord], reason: Reason, now: int
) -> None:
    """Move rows out of the history of a conversation; they keep their numbers and their expiry."""
    tx.rows.remove(rows)
    for row in rows:
        tx.documents.put(
            DocumentRecord(
                home=home,
                kind=reason,
                name=str(row.seq),
                session_key=row.session_key,
                number=row.seq,
                body=encode_json(attrs.asdict(row), "row"),
                created_at=now,
                expires_at=row.expires_at,
            )
        )


def superseded_rows(
    tx: Transaction, home: str, query: RowQuery
) -> tuple[list[RowRecord], set[int]]:
    """Return rows that were cut off and kept, as a query for the others asks for them.

    With them come the numbers of those that cannot be read.
    """
    wanted = DocumentQuery(
        home=home,
        kind="superseded",
        session_key=query.session_key,
        above=query.above,
        below=query.below,
        order=query.order,
        limit=query.limit,
        now=query.now,
    )
    rows: list[RowRecord] = []
    unreadable: set[int] = set()
    while len(rows) < query.limit:
        documents = tx.documents.numbered(wanted)
        for document in documents:
            try:
                rows.append(row_aside(document))
            except StateError:
                unreadable.add(document.number)
        if len(documents) < wanted.limit:
            break
        last = documents[-1].number
        is_down = query.order == "descending"
        wanted = attrs.evolve(
            wanted,
            limit=wanted.limit * 4,
            above=wanted.above if is_down else last,
            below=last if is_down else wanted.below,
        )
    return rows[: query.limit], unreadable


def row_aside(document: DocumentRecord) -> RowRecord:
    """Return the row that a document holds.

    Raises:
        StateError: It cannot be read (`corrupt`).
    """
    try:
        return RowRecord(**json.loads(document.body))
    except (ValueError, TypeError, RecursionError) as error:
        text = f"the row {document.number} that was put aside cannot be read"
        raise StateError(text, code="corrupt") from error
