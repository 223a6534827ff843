"""Search over stored messages, as the contract offers it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Final

import attrs

from vitehub_chat.errors import StateError
from vitehub_chat.model.clock import to_epoch_us
from vitehub_chat.model.folding import contains_all, fold_text, split_query
from vitehub_chat.model.hits import SearchHit, SearchPage
from vitehub_chat.model.keys import ConversationKey, check_id
from vitehub_chat.model.rows import Row, SessionInfo
from vitehub_chat.model.snippets import MARK, count_matches, snippet_pieces
from vitehub_chat.state.codec import decode_row
from vitehub_chat.state.context import NO_CONTEXT, StateContext
from vitehub_chat.state.contract_search import SearchRequest
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.records import RowRecord, SessionRecord
from vitehub_chat.state.seeking import EARLIEST, LATEST, Candidate, Seeker, TextQuery
from vitehub_chat.state.steps.listing import ListRequest, info_of
from vitehub_chat.state.stores.shrinking import shrink_once
from vitehub_chat.state.stores.store import StepRunner, Store
from vitehub_chat.state.tables import SessionQuery, Transaction

SESSIONS_AT_ONCE: Final = 500
"""How many sessions are listed by one read."""

ROWS_AT_ONCE: Final = 20_000
"""About how many rows one read looks at, so that it takes a tenth of a second."""

_UNKNOWN_AT_ONCE: Final = 200
"""How many rows are read at once whose texts are not kept yet."""


class Searching(Store, area="search"):
    """`SearchIndex`."""

    def __init__(self, runner: StepRunner, seeker: Seeker) -> None:
        super().__init__(runner)
        self._seeker = seeker

    async def search(
        self,
        tenant: str | None,
        /,
        *,
        agent: str | None,
        user_key: str | None = None,
        request: SearchRequest,
        ctx: StateContext = NO_CONTEXT,
    ) -> SearchPage:
        """Carry out `SearchIndex.search`."""
        check_ids(request, tenant=tenant, agent=agent, user_key=user_key)
        words = split_query(request.query)
        hunt = _Hunt(words, request.limit)
        if not words or request.limit <= 0:
            return hunt.page()
        query = _query_of(request, words, self._now(ctx))
        listed = ListRequest(
            tenant=tenant,
            agent=agent,
            user_key=user_key,
            conversation=request.conversation,
            limit=SESSIONS_AT_ONCE - 1,
            cursor=None,
            updated_since=None,
        )
        async for page in self._sessions(listed, ctx):
            wanted = [each for each in page if _is_wanted(each, request.session_id)]
            for batch in _batches(wanted):
                await self._search(hunt, batch, query, ctx)
                if hunt.is_over:
                    return hunt.page()
        return hunt.page()

    async def keep_all(self, ctx: StateContext = NO_CONTEXT) -> int:
        """Keep the texts of all rows that have none yet, and count them."""
        count = after = 0
        while found := await self._in_time(
            self._seeker.after(after, _UNKNOWN_AT_ONCE), ctx, writes=False
        ):
            kept = self._seeker.keep([row for _, row in found])
            count += await self._in_time(kept, ctx, writes=True)
            after = found[-1][0]
        return count

    async def _sessions(
        self, listed: ListRequest, ctx: StateContext
    ) -> AsyncIterator[Sequence[SessionRecord]]:
        """Yield the sessions that are searched, the newest activity first."""
        after: tuple[int, int] | None = None
        while True:
            needs = Needs(
                now=self._now(ctx),
                conversation=listed.conversation,
                sessions=listed if after is None else None,
            )
            page = await self._read(_lister(listed, after), ctx, needs)
            yield page
            if len(page) < SESSIONS_AT_ONCE:
                return
            after = (page[-1].last_message_at, page[-1].key)

    async def _search(
        self, hunt: _Hunt, sessions: Sequence[SessionRecord], query: TextQuery, ctx: StateContext
    ) -> None:
        """Search some sessions, until there are hits enough."""
        below: int | None = None
        size = hunt.missing
        while sessions:
            part = attrs.evolve(query, sessions=tuple(each.key for each in sessions), below=below)
            found = await self._find(part, size, ctx)
            await self._look_at(hunt, sessions, found, ctx)
            if hunt.is_over or not found.rows or found.is_all:
                return
            last = found.rows[-1].row
            sessions = _from(sessions, last.session_key)
            below = last.seq
            # What is not known yet is most of what comes next, in all likelihood.
            size = hunt.missing if found.rows[-1].is_indexed else _UNKNOWN_AT_ONCE

    async def _find(self, query: TextQuery, size: int, ctx: StateContext) -> _Found:
        async def find(limit: int) -> _Found:
            rows = await self._seeker.find(attrs.evolve(query, limit=limit))
            return _Found(rows, is_all=len(rows) < limit)

        return await self._in_time(shrink_once(find, size), ctx, writes=False)

    async def _look_at(
        self, hunt: _Hunt, sessions: Sequence[SessionRecord], found: _Found, ctx: StateContext
    ) -> None:
        infos = {each.key: each for each in sessions}
        for each in found.rows:
            hunt.look_at(infos[each.row.session_key], each.row)
        unknown = [each.row for each in found.rows if not each.is_indexed]
        if unknown:
            await self._in_time(self._seeker.keep(unknown), ctx, writes=True)


def check_ids(request: SearchRequest, **ids: str | None) -> None:
    """Check the ids of a request, and others by their names.

    Raises:
        InputError: One is no text, or none that can be stored; what is looked for is compared by
            the database, and there are databases that take no such text.
    """
    ids |= {"role": request.role, "session_id": request.session_id}
    if request.conversation is not None:
        parts = attrs.asdict(request.conversation)
        ids |= {f"conversation.{name}": part for name, part in parts.items()}
    for path, value in ids.items():
        if value is not None:
            check_id(value, path)


def hit_of(info: SessionInfo, row: Row, words: Sequence[str]) -> SearchHit:
    """Return what a search tells of a row that it found."""
    text = row.message.text
    pieces = snippet_pieces(text, words)
    return SearchHit(
        id=info.id,
        conversation=info.conversation,
        session_id=row.session_id,
        title=info.title,
        message_id=row.message.id or "",
        seq=row.seq,
        role=row.message.role,
        created_at=row.said_at,
        snippet=MARK.join(pieces),
        score=count_matches(text, words),
        pieces=pieces,
    )


@attrs.frozen
class _Found:
    """Rows that may be hits, and whether there are no more."""

    rows: Sequence[Candidate]
    is_all: bool


@attrs.define
class _Hunt:
    """The hits so far."""

    words: tuple[str, ...]
    limit: int
    hits: list[SearchHit] = attrs.field(factory=list)
    unreadable: list[tuple[ConversationKey, int]] = attrs.field(factory=list)

    @property
    def missing(self) -> int:
        """How many hits are missing."""
        return self.limit - len(self.hits)

    @property
    def is_over(self) -> bool:
        """Whether there are enough."""
        return self.missing <= 0

    def look_at(self, session: SessionRecord, record: RowRecord) -> None:
        """Take a row if it is a hit and there is room."""
        if self.is_over:
            return
        info = info_of(session)
        try:
            row = decode_row(record)
        except StateError:
            self.unreadable.append((info.conversation, record.seq))
            return
        if contains_all(fold_text(row.message.text), self.words):
            self.hits.append(hit_of(info, row, self.words))

    def page(self) -> SearchPage:
        """Return what was found."""
        return SearchPage(items=tuple(self.hits), unreadable=tuple(self.unreadable))


def _query_of(request: SearchRequest, words: tuple[str, ...], now: int) -> TextQuery:
    age = request.not_older_than
    return TextQuery(
        sessions=(),
        words=words,
        role=request.role,
        after=EARLIEST if request.after is None else to_epoch_us(request.after),
        before=LATEST if request.before is None else to_epoch_us(request.before),
        since=EARLIEST if age is None else to_epoch_us(age.since),
        spared_role="system" if age is not None and age.spares_system else None,
        limit=request.limit,
        now=now,
    )


def _is_wanted(session: SessionRecord, session_id: str | None) -> bool:
    """Tell whether a session is searched: it is readable, and the one that was asked for."""
    if session_id not in {None, session.session_id}:
        return False
    try:
        info_of(session)
    except StateError:
        return False
    return True


def _lister(
    listed: ListRequest, after: tuple[int, int] | None
) -> Callable[[Transaction, int], Sequence[SessionRecord]]:
    return lambda tx, _now: _list(tx, listed, after)


def _list(
    tx: Transaction, listed: ListRequest, after: tuple[int, int] | None
) -> Sequence[SessionRecord]:
    conversation_key = None
    if listed.conversation is not None:
        conversation = tx.conversations.get(listed.conversation.encode())
        if conversation is None:
            return ()
        conversation_key = conversation.key
    return tx.sessions.list(
        SessionQuery(
            tenant=listed.tenant,
            agent=listed.agent,
            user_key=listed.user_key,
            conversation_key=conversation_key,
            after=after,
            limit=listed.limit + 1,
        )
    )


def _batches(sessions: Sequence[SessionRecord]) -> Iterator[Sequence[SessionRecord]]:
    """Yield sessions in lists with about so many rows as one read looks at."""
    batch: list[SessionRecord] = []
    rows = 0
    for each in sessions:
        if batch and rows + each.message_count > ROWS_AT_ONCE:
            yield batch
            batch, rows = [], 0
        batch.append(each)
        rows += each.message_count
    if batch:
        yield batch


def _from(sessions: Sequence[SessionRecord], key: int) -> Sequence[SessionRecord]:
    """Return the sessions from one on."""
    at = next(index for index, each in enumerate(sessions) if each.key == key)
    return sessions[at:]
