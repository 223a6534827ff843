"""Truncating: a conversation is cut off from a message on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vitehub_chat.errors import StateConflictError, StateError
from vitehub_chat.model.clock import in_us
from vitehub_chat.model.json_text import decode_json, encode_json
from vitehub_chat.model.keys import ConversationKey, encode_key
from vitehub_chat.model.rows import Truncated
from vitehub_chat.state.records import EntryRecord
from vitehub_chat.state.row_requests import TruncateRequest
from vitehub_chat.state.steps.recording import Writing
from vitehub_chat.state.steps.removing import Verdict, take_out, unit_at
from vitehub_chat.state.steps.running import check_at_rest
from vitehub_chat.state.steps.scopes import Scope, find_message, find_scope
from vitehub_chat.state.steps.visible import VisibleRows
from vitehub_chat.state.tables import Transaction


def truncate(
    tx: Transaction, key: ConversationKey, request: TruncateRequest, writing: Writing
) -> Truncated:
    """Carry out `TranscriptStore.truncate`."""
    claim_key = truncate_claim(key, request)
    if claim_key is not None:
        first = _answer_of(tx, claim_key, writing.now)
        if first is not None:
            return first
    scope = find_scope(tx, key, request.session_id)
    check_at_rest(tx, scope, writing.now)
    if request.expected_generation not in {None, scope.generation}:
        raise StateConflictError(
            f"the generation is {scope.generation}, not {request.expected_generation}",
            hint="load the history again",
        )
    answer = cut_off(tx, scope, request, writing)
    if claim_key is not None:
        _remember(tx, key, claim_key, answer, request, writing)
    return answer


def cut_off(tx: Transaction, scope: Scope, request: TruncateRequest, writing: Writing) -> Truncated:
    """Take away what comes from a message on; a cut inside a unit takes the whole unit.

    Raises:
        NotFoundError: There is no such message.
    """
    now = writing.now
    found = find_message(tx, scope, request.message_id, now)
    rows = VisibleRows(tx, scope.rows(now))
    records, start, _ = unit_at(rows, found.seq if request.inclusive else found.seq + 1)
    gone = records[start:]
    generation = scope.generation
    summary: Verdict = "kept"
    if gone:
        summary = take_out(tx, scope, gone, writing, raises_generation=True)
        generation = tx.conversations.next_generation(found.conversation_key)
    left = rows.older(None, 1)
    return Truncated(
        deleted=len(gone),
        live_edge_seq=left[0].seq if left else 0,
        generation=generation,
        summary=summary,
    )


def truncate_claim(key: ConversationKey, request: TruncateRequest) -> str | None:
    """Return the claim under which a truncation that comes again is recognised, or None."""
    if request.idempotency_key is None:
        return None
    return encode_key(key.encode(), "truncate", request.idempotency_key)


def truncate_lock(key: ConversationKey) -> str:
    """Return the lock under which the answers to truncations are filed; nobody holds it."""
    return encode_key("truncate", key.encode())


def _answer_of(tx: Transaction, claim_key: str, now: int) -> Truncated | None:
    """Return what the same truncation answered before, if that is still to be remembered."""
    entry = tx.entries.by_claim(claim_key)
    if entry is None:
        return None
    if entry.claim_until <= now or entry.end is None:
        tx.entries.update(attrs.evolve(entry, claim_key=None))
        return None
    try:
        fields: Mapping[str, Any] = decode_json(entry.end)
        return Truncated(**fields)
    except (ValueError, TypeError, RecursionError) as error:
        text = "what a truncation answered cannot be read"
        raise StateError(text, code="corrupt") from error


def _remember(
    tx: Transaction,
    key: ConversationKey,
    claim_key: str,
    answer: Truncated,
    request: TruncateRequest,
    writing: Writing,
) -> None:
    until = writing.now + in_us(request.dedupe_ttl)
    tx.entries.insert(
        EntryRecord(
            ticket_id=encode_key(claim_key, str(writing.now)),
            lock_key=truncate_lock(key),
            conversation=key.encode(),
            lane=encode_key(key.encode(), request.session_id),
            claim_id=request.idempotency_key,
            claim_key=claim_key,
            payload=None,
            starts_session=False,
            coalesces=False,
            state="ended",
            owner=None,
            attended_until=0,
            expires_at=None,
            claim_until=until,
            keep_until=until,
            end=encode_json(attrs.asdict(answer), "truncate"),
        )
    )
