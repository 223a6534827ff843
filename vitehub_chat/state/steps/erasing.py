"""Erasing: what a person said and owns goes for good, in steps that may be repeated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from vitehub_chat.errors import ChatBusyError, StateError
from vitehub_chat.model.json_text import decode_json
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.records import (
    AuthoredRow,
    DocumentRecord,
    EntryRecord,
    RowRecord,
    SessionRecord,
)
from vitehub_chat.state.steps.aside import row_aside
from vitehub_chat.state.steps.clearing import clear_scope
from vitehub_chat.state.steps.granting import live_lock
from vitehub_chat.state.steps.inventory import STORES
from vitehub_chat.state.steps.recording import Writing
from vitehub_chat.state.steps.removing import take_out
from vitehub_chat.state.steps.running import check_at_rest
from vitehub_chat.state.steps.scopes import find_scope, scope_of
from vitehub_chat.state.tables import SessionQuery, Transaction

SLICE: Final = 200
"""How many rows or entries are looked at in one step."""


@attrs.frozen(kw_only=True)
class Person:
    """Somebody, by the key under which their sessions and messages are stored."""

    tenant: str | None
    user_key: str

    def is_here(self, encoded: str) -> bool:
        """Tell whether a conversation belongs to the same tenant."""
        return ConversationKey.decode(encoded).tenant == self.tenant


def sessions_of(
    tx: Transaction, person: Person, after: tuple[int, int] | None, limit: int
) -> Sequence[SessionRecord]:
    """Return the sessions of a person, the newest activity first."""
    query = SessionQuery(tenant=person.tenant, user_key=person.user_key, after=after, limit=limit)
    return tx.sessions.list(query)


def written_by(tx: Transaction, person: Person, after: int) -> Sequence[AuthoredRow]:
    """Return where the next messages are that a person wrote."""
    return tx.rows.by_author(person.user_key, after, SLICE)


def with_payload(tx: Transaction, above: int) -> Sequence[EntryRecord]:
    """Return the next entries that still have their payload."""
    return tx.entries.with_payload(above, SLICE)


def put_aside_after(tx: Transaction, after: tuple[str, str, str]) -> Sequence[DocumentRecord]:
    """Return the next rows that were put aside."""
    return tx.documents.put_aside(after, SLICE)


def erase_session(tx: Transaction, person: Person, session_key: int, now: int) -> dict[str, int]:
    """Erase one session of a person; with the last one of a conversation all that is left there.

    Raises:
        ChatBusyError: A turn waits or runs in it (`turn_in_progress`); nothing was deleted.
    """
    session = tx.sessions.get(session_key)
    if session is None or (session.tenant, session.user_key) != (person.tenant, person.user_key):
        return dict.fromkeys(STORES, 0)
    scope = scope_of(tx, session)
    if [each.key for each in tx.sessions.all_of(session.conversation_key)] == [session_key]:
        scope = attrs.evolve(scope, is_whole=True, session_id=None, session=None)
    check_at_rest(tx, scope, now)
    return clear_scope(tx, scope, now, delete_session=True)


def erase_messages(
    tx: Transaction, person: Person, encoded: str, message_ids: Iterable[str], writing: Writing
) -> dict[str, int]:
    """Erase messages that a person wrote in the sessions of others."""
    counts = dict.fromkeys(STORES, 0)
    scope = find_scope(tx, ConversationKey.decode(encoded), None)
    if scope.conversation is None:
        return counts
    key = scope.conversation.key
    found = (tx.rows.by_message(key, each, writing.now) for each in message_ids)
    rows = [row for row in found if row is not None and _is_elsewhere(tx, row, person)]
    rows.sort(key=lambda row: row.seq)
    if not rows:
        return counts
    take_out(tx, scope, rows, writing, erases=True)
    counts["rows"] = len(rows)
    for ticket_id in {row.turn_id for row in rows if row.turn_id is not None}:
        entry = tx.entries.get(ticket_id)
        if entry is not None and entry.state in {"ended", "lost"}:
            tx.entries.delete(ticket_id)
            counts["entries"] += 1
    return counts


def _is_elsewhere(tx: Transaction, row: RowRecord, person: Person) -> bool:
    """Tell whether a person wrote a row in a session that is not theirs; theirs go as a whole."""
    session = tx.sessions.get(row.session_key)
    return row.author == person.user_key and (
        session is None or session.user_key != person.user_key
    )


def erase_entry(tx: Transaction, person: Person, ticket_id: str, now: int) -> dict[str, int]:
    """Erase a message that a person sent and that was not recorded yet.

    Raises:
        ChatBusyError: It is run at this moment (`turn_in_progress`).
    """
    counts = dict.fromkeys(STORES, 0)
    entry = tx.entries.get(ticket_id)
    if entry is None or not names_person(entry, person):
        return counts
    if entry.state == "running":
        lock = live_lock(tx, entry.lock_key, now)
        if lock is not None and lock.ticket_id == entry.run_ticket_id:
            raise ChatBusyError("a turn of this person is running", code="turn_in_progress")
    tx.entries.delete(ticket_id)
    counts["entries"] = 1
    return counts


def erase_aside(
    tx: Transaction, person: Person, document: DocumentRecord, now: int
) -> dict[str, int]:
    """Erase a row of a person that was put aside in the session of another one."""
    counts = dict.fromkeys(STORES, 0)
    found = tx.documents.get(document.home, document.kind, document.name, now)
    if found is not None and is_by_person(found, person):
        tx.documents.delete(found.home, found.kind, found.name)
        counts["rows"] = 1
    return counts


def names_person(entry: EntryRecord, person: Person) -> bool:
    """Tell whether the payload of an entry says that it comes from a person."""
    if entry.payload is None or not person.is_here(entry.conversation):
        return False
    try:
        fields = decode_json(entry.payload)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and fields.get("user_key") == person.user_key


def is_by_person(document: DocumentRecord, person: Person) -> bool:
    """Tell whether a row that was put aside was written by a person."""
    row = _row_of(document)
    return row is not None and row.author == person.user_key and person.is_here(document.home)


def _row_of(document: DocumentRecord) -> RowRecord | None:
    try:
        return row_aside(document)
    except StateError:
        return None
