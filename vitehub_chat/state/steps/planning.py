"""Planning: the plans of turns, kept beside their rows."""

from __future__ import annotations

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.plans import TurnPlan
from vitehub_chat.state.document_codec import decode_plan, encode_plan
from vitehub_chat.state.records import DocumentRecord
from vitehub_chat.state.steps.recording import Writing
from vitehub_chat.state.steps.scopes import Scope, find_scope
from vitehub_chat.state.tables import DocumentQuery, Transaction


def store_plan(tx: Transaction, session_key: int, plan: TurnPlan, writing: Writing) -> None:
    """Store the plan of a turn behind those of the turns that ended before it.

    No-op if the session is gone.
    """
    session = tx.sessions.get(session_key)
    if session is None:
        return
    conversation = tx.conversations.get(session.conversation)
    tx.documents.put(
        DocumentRecord(
            home=session.conversation,
            kind="plan",
            name=plan.turn_id,
            session_key=session.key,
            number=0 if conversation is None else conversation.last_seq,
            body=encode_plan(plan),
            created_at=writing.now,
            expires_at=writing.expires_at,
        )
    )


def get_plan(
    tx: Transaction,
    key: ConversationKey,
    turn_id: str | None,
    session_id: str | None,
    now: int,
) -> TurnPlan | None:
    """Carry out `PlanStore.get`."""
    found = _find(tx, find_scope(tx, key, session_id), turn_id, now)
    return None if found is None else decode_plan(found)


def _find(tx: Transaction, scope: Scope, turn_id: str | None, now: int) -> DocumentRecord | None:
    if not scope.exists:
        return None
    encoded, session_key = scope.encoded, scope.session_key
    if turn_id is not None:
        found = tx.documents.get(encoded, "plan", turn_id, now)
        is_there = found is not None and session_key in {None, found.session_key}
        return found if is_there else None
    if session_key is not None:
        return tx.documents.newest(encoded, "plan", session_key, now)
    query = DocumentQuery(home=encoded, kind="plan", order="descending", limit=1, now=now)
    return next(iter(tx.documents.numbered(query)), None)
