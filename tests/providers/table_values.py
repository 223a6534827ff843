"""What is drawn for the tables: few different keys and times, so that stories cross."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from vitehub_chat.state.records import (
    DocumentKind,
    DocumentRecord,
    EntryRecord,
    RowRecord,
    SessionRecord,
)

START = 1_767_225_600_000_000
"""The time at which `FakeClock` stands, so that nothing is cleaned up by itself."""

LOCKS = ("lock", "lock ")
CONVERSATIONS = ("1:a", "1:%")
LANES = ("lane", "LANE")
CLAIMS = ("m1", "m'2", "🙂")
TICKETS = ("t1", "t2", "t3", "t4", "t5", "t6")
SESSIONS = (None, "s1", "S1")
MESSAGES = ("m1", "m2", "m3", "m4")
STATES = ("waiting", "waiting", "running", "recorded", "ended", "ended", "lost")
TENANTS = (None, "acme")
OWNERS = (None, "ann", "bob")

KINDS: tuple[DocumentKind, ...] = ("plan", "value", "hidden", "superseded")
NAMES = ("n1", "N1", "n 1", "n'1🙂")

SHOWN = (None, True, False)

times = st.integers(START + 1, START + 4)
maybe_times = st.none() | times


def entries() -> st.SearchStrategy[EntryRecord]:
    """Draw entries of all states, with few different keys."""
    return st.builds(
        EntryRecord,
        ticket_id=st.sampled_from(TICKETS),
        lock_key=st.sampled_from(LOCKS),
        conversation=st.sampled_from(CONVERSATIONS),
        lane=st.sampled_from(LANES),
        claim_id=st.none(),
        claim_key=st.none() | st.sampled_from(CLAIMS),
        payload=st.sampled_from([None, "{}"]),
        starts_session=st.booleans(),
        coalesces=st.booleans(),
        state=st.sampled_from(STATES),
        owner=st.sampled_from(OWNERS),
        attended_until=times,
        expires_at=maybe_times,
        claim_until=times,
        keep_until=times,
        run_ticket_id=st.none() | st.sampled_from(TICKETS),
        session_key=st.none() | st.integers(1, 2),
        end=st.none() | st.just('{"v":1}'),
    )


def rows() -> st.SearchStrategy[RowRecord]:
    """Draw rows that have no place yet."""
    return st.builds(
        RowRecord,
        conversation_key=st.just(0),
        seq=st.just(0),
        session_key=st.just(0),
        session_id=st.none(),
        message_id=st.sampled_from(MESSAGES),
        role=st.sampled_from(["user", "assistant"]),
        status=st.sampled_from(["complete", "interrupted", "error", "pending"]),
        created_at=maybe_times,
        recorded_at=times,
        turn_no=st.integers(0, 3),
        turn_id=st.none() | st.just("t1"),
        thread_id=st.none() | st.just(""),
        author=st.sampled_from(OWNERS),
        is_shown=st.booleans(),
        body=st.sampled_from(["{}", "\0", "é🙂"]),
        extra=st.none() | st.just("{}"),
        fence_key=st.none() | st.sampled_from(LOCKS),
        fence_token=st.none() | st.integers(1, 9),
        expires_at=maybe_times,
    )


def session_record(
    encoded: str, key: int, session_id: str | None, base: str | None, owner: str | None, at: int
) -> SessionRecord:
    return SessionRecord(
        scope=encoded,
        base=base,
        session_id=session_id,
        conversation_key=key,
        conversation=encoded,
        tenant="acme" if owner else None,
        agent="helper" if base else None,
        user_key=owner,
        chat_id=owner,
        first_message_id=None,
        started_at=START,
        last_message_at=at,
    )


def documents() -> st.SearchStrategy[DocumentRecord]:
    """Draw documents of few names; what is asked for in order has a number of its own."""
    return st.builds(
        _document,
        home=st.sampled_from(CONVERSATIONS),
        kind=st.sampled_from(KINDS),
        name=st.sampled_from(NAMES),
        session_key=st.integers(0, 2),
        number=st.integers(0, 2),
        body=st.sampled_from(["{}", "\0", "é🙂"]),
        expires_at=maybe_times,
    )


def _document(name: str, kind: DocumentKind, number: int, **fields: Any) -> DocumentRecord:
    index = NAMES.index(name)
    return DocumentRecord(
        name=name,
        kind=kind,
        number=number if kind == "plan" else index,
        created_at=START + index,
        **fields,
    )
