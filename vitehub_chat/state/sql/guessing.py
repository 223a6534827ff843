"""Guessing: what to look up at once for a step, so that it seldom asks for more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vitehub_chat.model.clock import to_epoch_us
from vitehub_chat.model.keys import ConversationKey, encode_key
from vitehub_chat.state.cursors import decode_cursor
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.row_requests import TurnsRequest
from vitehub_chat.state.sql.known import NewestOf
from vitehub_chat.state.sql.looks.conversations import (
    ConversationLook,
    ListLook,
    NewestLook,
    SessionLook,
    SessionOfLook,
    SessionsLook,
    SummaryLook,
)
from vitehub_chat.state.sql.looks.documents import (
    DocumentCountsLook,
    DocumentLook,
    NewestDocumentLook,
    NumberedLook,
    ValueLook,
)
from vitehub_chat.state.sql.looks.locks import CountLook, LineLook, OpenLook
from vitehub_chat.state.sql.looks.look import Look
from vitehub_chat.state.sql.looks.rows import AnswerLook, MessagesLook, RowsLook
from vitehub_chat.state.sql.numbers import Numbers, ReservationLook
from vitehub_chat.state.steps.indexing import turns_scope
from vitehub_chat.state.steps.listing import ListRequest
from vitehub_chat.state.steps.visible import FIRST_SLICE
from vitehub_chat.state.tables import DocumentQuery, SessionQuery
from vitehub_chat.state.values import PageRequest, SessionRequest, WindowRequest

Narrowing = dict[str, Any]

VERBATIM = 64
"""How many rows behind an anchor are looked up before it is known where the anchor is."""


def looks_for(needs: Needs, secret: bytes, numbers: Numbers | None) -> Sequence[Look]:
    """Return what to look up; `numbers` are those for what a step creates, None if it only reads.

    Raises:
        CursorError: A cursor is not one of this store.
    """
    found = [*_turn(needs, reads=numbers is None), *_conversation(needs, secret)]
    if needs.session is not None:
        found.extend(_resolution(needs, needs.session, numbers))
    if needs.value is not None:
        found.append(ValueLook(*needs.value))
    if needs.sessions is not None:
        found.append(_list(needs.sessions, secret))
    return list(dict.fromkeys(found))


def likely_names(needs: Needs) -> frozenset[NewestOf]:
    """Return by what names a session that is wanted is looked up first."""
    request = needs.session
    if request is None or request.policy is None:
        return frozenset()
    here, base = request.conversation.encode(), request.base
    if base is None:
        return frozenset({("base", here, None)})
    channel = request.conversation.encode_channel()
    return frozenset({("id", channel, base), ("base", channel, base), ("id", here, base)})


def _turn(needs: Needs, *, reads: bool) -> Iterator[Look]:
    for lock_key in needs.lock_keys:
        yield LineLook(lock_key=lock_key)
    if needs.claim_key is not None:
        yield LineLook(claim_key=needs.claim_key)
    if needs.ticket_id is not None:
        if not needs.lock_keys:  # else it is in one of these lines, in all likelihood
            yield LineLook(ticket_id=needs.ticket_id)
        if needs.session is None:
            yield SessionLook(ticket_id=needs.ticket_id)
            if reads:
                yield AnswerLook(needs.ticket_id)


def _conversation(needs: Needs, secret: bytes) -> Iterator[Look]:
    if needs.conversation is None:
        return
    encoded = needs.conversation.encode()
    yield ConversationLook(encoded)
    for session_id in needs.session_ids:
        yield SessionOfLook(encoded, session_id)
    if needs.message_ids:
        yield MessagesLook(encoded, needs.message_ids)
    if needs.window is not None:
        yield from _window_of(needs, encoded, needs.window)
    if needs.page is not None:
        yield from _page(encoded, needs.page, secret)
    if needs.rows_above is not None:
        narrowing: Narrowing = _by_id(needs.session_ids[0]) if needs.session_ids else {}
        yield RowsLook(
            encoded=encoded,
            order="ascending",
            above=needs.rows_above,
            limit=needs.rows_limit,
            **narrowing,
        )
    if needs.has_summary and not needs.session_ids:
        yield SummaryLook(encoded, 0)
    yield from _documents(needs, encoded)
    if needs.turns is not None:
        yield from _index(encoded, needs.conversation, needs.turns, secret)
    yield from _all(needs, encoded)


def _documents(needs: Needs, encoded: str) -> Iterator[Look]:
    for kind, name in needs.documents:
        yield DocumentLook(encoded, kind, name)
    if not needs.session_ids:
        for kind in needs.newest_documents:
            query = DocumentQuery(
                home=encoded, kind=kind, order="descending", limit=1, now=needs.now
            )
            yield NumberedLook(query)
    for session_id in needs.session_ids:
        for kind in needs.newest_documents:
            yield NewestDocumentLook(encoded=encoded, kind=kind, session_name=session_id)


def _index(
    encoded: str, key: ConversationKey, request: TurnsRequest, secret: bytes
) -> Iterator[Look]:
    narrowing: Narrowing = {}
    if request.session_id is not None:
        yield SessionOfLook(encoded, request.session_id)
        narrowing = _by_id(request.session_id)
    above = 0
    if request.cursor is not None:
        scope = turns_scope(key, request.session_id)
        above, _ = decode_cursor(secret, scope, request.cursor)
    yield RowsLook(encoded=encoded, order="ascending", above=above, limit=FIRST_SLICE, **narrowing)


def _all(needs: Needs, encoded: str) -> Iterator[Look]:
    if needs.has_open or needs.clears:
        yield OpenLook(encoded)
    if needs.has_open and not needs.session_ids:
        yield SessionsLook(encoded)
    if needs.clears and not needs.session_ids:
        yield SessionsLook(encoded)
        yield DocumentCountsLook(encoded, None)
        for kind in ("rows", "summaries", "entries"):
            yield CountLook(kind, encoded, None)


def _window_of(needs: Needs, encoded: str, window: WindowRequest) -> Iterator[Look]:
    if needs.session_key is not None:
        yield SessionLook(key=needs.session_key)
        yield from _window(encoded, window, 0, {"session_key": needs.session_key})
    else:
        yield SessionOfLook(encoded, None)
        yield from _window(encoded, window, 0, _by_id(None))


def _window(
    encoded: str, window: WindowRequest, written: int, narrowing: Narrowing
) -> Iterator[Look]:
    most = window.limit
    if window.from_anchor:
        yield NewestDocumentLook(encoded=encoded, kind="rolling", **narrowing)
        most = min(most, VERBATIM)
    if window.whole_conversation:
        narrowing = {}
    limit = most + len(window.besides) + written
    for is_shown, count in ((True, limit), (False, max(most, 1))):
        yield RowsLook(
            encoded=encoded,
            order="descending",
            limit=count,
            is_shown=is_shown,
            from_anchor=window.from_anchor and not window.whole_conversation,
            **narrowing,
        )


def _page(encoded: str, page: PageRequest, secret: bytes) -> Iterator[Look]:
    narrowing: Narrowing = {"encoded": encoded}
    if page.session_id is not None:
        yield SessionOfLook(encoded, page.session_id)
        narrowing.update(_by_id(page.session_id))
    scope = encode_key(encoded, page.session_id)
    cursor = None if page.cursor is None else decode_cursor(secret, scope, page.cursor)[0]
    if page.around is not None:
        around, before = {**narrowing, "around": page.around}, page.limit // 2
        yield MessagesLook(encoded, (page.around,))
        # One more on either side tells whether that is the end.
        yield RowsLook(order="descending", limit=before + 1, **around)
        yield RowsLook(order="ascending", limit=max(page.limit - before, 1), **around)
    elif cursor is None or page.direction == "older":
        below: Narrowing = {} if cursor is None else {"below": cursor}
        yield RowsLook(order="descending", limit=page.limit + 1, **below, **narrowing)
    else:
        above = max(cursor - 1, 0)
        yield RowsLook(order="descending", limit=1, below=cursor + 1, **narrowing)
        yield RowsLook(order="ascending", limit=page.limit + 2, above=above, **narrowing)
    yield RowsLook(order="descending", limit=1, **narrowing)


def _resolution(needs: Needs, request: SessionRequest, numbers: Numbers | None) -> Iterator[Look]:
    encoded = request.conversation.encode()
    yield ConversationLook(encoded)
    if request.policy is None:
        narrowing = _by_id(None)
        yield SessionOfLook(encoded, None)
    else:
        base = request.base
        scope = encoded if base is None else request.conversation.encode_channel()
        narrowing = {"session_by": "base", "session_scope": scope, "session_name": base}
        for name in sorted(likely_names(needs), key=str):
            yield NewestLook(name)
    if needs.message_ids:
        yield MessagesLook(encoded, needs.message_ids)
    if needs.window is not None:
        yield from _window(encoded, needs.window, len(needs.message_ids), narrowing)
    if numbers is not None:
        if not numbers.has("conversation"):
            yield ReservationLook("conversation", encoded)
        if not numbers.has("session"):
            yield ReservationLook("session", encoded)


def _list(request: ListRequest, secret: bytes) -> Look:
    scope = encode_key("sessions", request.tenant, request.agent, request.user_key)
    after = None if request.cursor is None else decode_cursor(secret, scope, request.cursor)
    since = request.updated_since
    query = SessionQuery(
        tenant=request.tenant,
        agent=request.agent,
        user_key=request.user_key,
        after=after,
        updated_since=None if since is None else to_epoch_us(since),
        limit=request.limit + 1,
    )
    key = request.conversation
    return ListLook(query, None if key is None else key.encode())


def _by_id(session_id: str | None) -> Narrowing:
    return {"session_by": "id", "session_name": session_id}
