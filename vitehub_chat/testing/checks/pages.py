"""Pages: walking through a conversation by cursors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from vitehub_chat.errors import CursorError, NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import HistoryPage
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.row_requests import AgeLimit, RangeRequest
from vitehub_chat.state.values import PageRequest, SessionRequest
from vitehub_chat.testing.checks.expecting import equal, holds, no, present, refused
from vitehub_chat.testing.checks.material import (
    MANUAL,
    append,
    ids_of,
    new_key,
    numbered,
    numbers_of,
    row,
    rows,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("pages")

_MOST_PAGES: Final = 100


@group
async def check_the_first_page_is_the_newest_rows(open_state: OpenState, clock: FakeClock) -> None:
    """Return the newest rows in their order when no cursor is given."""
    key = new_key()
    async with open_state(clock) as state:
        await _fill(state, key, 10)
        page = await _page(state, key, limit=3)
        equal(numbers_of(page.items), [8, 9, 10], "the rows")
        equal((page.at_live_edge, page.live_edge_seq), (True, 10), "the live edge")
        holds(page.older_cursor is not None, "there is no cursor to older rows")
        whole = await _page(state, key, limit=10)
        equal((len(whole.items), whole.older_cursor), (10, None), "a page of all rows")


@group
async def check_walking_older_meets_every_row_once(open_state: OpenState, clock: FakeClock) -> None:
    """Lead from the newest row to the first one, for every size of page."""
    key = new_key()
    async with open_state(clock) as state:
        await _fill(state, key, 12)
        for limit in (1, 4, 5, 12, 100):
            found = await _walk_older(state, key, limit=limit)
            equal(found, list(range(1, 13)), f"the rows in pages of {limit}")


@group
async def check_walking_older_beside_appends_meets_every_row_once(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Lead through the rows that were there, while others are stored."""
    key = new_key()
    async with open_state(clock) as state:
        await _fill(state, key, 9)
        page = await _page(state, key, limit=2)
        found = numbers_of(page.items)
        while page.older_cursor is not None and len(found) < _MOST_PAGES:
            await append(state, key, f"late {len(found)}")
            page = await _page(state, key, limit=2, cursor=page.older_cursor)
            found = numbers_of(page.items) + found
        equal(found, list(range(1, 10)), "the rows")


@group
async def check_walking_newer_meets_what_is_stored_later(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Lead on to rows that are stored after the cursor was made."""
    key = new_key()
    async with open_state(clock) as state:
        page = await _page(state, key)
        found: list[int] = []
        for round_number in range(4):
            await append(state, key, *(f"m{round_number} {n}" for n in range(round_number)))
            page = await _newer(state, key, page, limit=2)
            found += numbers_of(page.items)
            equal(page.at_live_edge, round_number < 3, "the live edge")
        page = await _newer(state, key, page, limit=2)
        found += numbers_of(page.items)
        equal((found, page.at_live_edge), ([1, 2, 3, 4, 5, 6], True), "the rows")
        page = await _newer(state, key, page, limit=2)
        equal((page.items, page.at_live_edge), ((), True), "the page behind the last row")


@group
async def check_a_row_has_the_cursor_of_its_place(open_state: OpenState, clock: FakeClock) -> None:
    """Give every row a cursor that leads to its neighbours and not to itself."""
    key = new_key()
    async with open_state(clock) as state:
        await _fill(state, key, 5)
        third = (await _page(state, key)).items[2].cursor
        older = await _page(state, key, limit=1, cursor=third)
        newer = await _page(state, key, limit=1, cursor=third, direction="newer")
        equal(numbers_of([*older.items, *newer.items]), [2, 4], "the neighbours of row 3")


@group
async def check_a_page_around_a_message_has_it_in_the_middle(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Return a message with those before and behind it."""
    key = new_key()
    async with open_state(clock) as state:
        await _fill(state, key, 9)
        for limit, expected in ((1, [5]), (2, [4, 5]), (3, [4, 5, 6]), (5, [3, 4, 5, 6, 7])):
            page = await _page(state, key, limit=limit, around="m5")
            equal(numbers_of(page.items), expected, f"the page of {limit}")
            no(page.at_live_edge, "the live edge")
        page = await _page(state, key, limit=4, around="m9")
        equal((numbers_of(page.items), page.at_live_edge), ([7, 8, 9], True), "the last one")
        call = _page(state, key, around="unknown")
        await refused(NotFoundError, call, "a page around an unknown message")


@group
async def check_what_is_too_old_has_nothing_around_it(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse a message that is older than asked for, and leave it out around others."""
    key, now = new_key(), clock.now()
    age = AgeLimit(since=now - timedelta(hours=1))
    async with open_state(clock) as state:
        batch = [row("m1", created_at=now - timedelta(hours=2)), *rows("m2", "m3")]
        await state.transcripts.append(SessionRequest(conversation=key), rows=batch)
        page = await _page(state, key, around="m2", not_older_than=age)
        equal(numbers_of(page.items), [2, 3], "the page around a young message")
        call = _page(state, key, around="m1", not_older_than=age)
        await refused(NotFoundError, call, "a page around an old message")
        young = RangeRequest(around="m2", not_older_than=age)
        some = await state.transcripts.range(key, request=young)
        equal(numbers_of(some.items), [2, 3], "the range around a young message")
        old = RangeRequest(around="m1", not_older_than=age)
        ranged = state.transcripts.range(key, request=old)
        await refused(NotFoundError, ranged, "a range around an old message")


@group
async def check_a_page_narrows_to_a_session(open_state: OpenState, clock: FakeClock) -> None:
    """Show the rows of one session alone, and lead through them alone."""
    key = new_key()
    async with open_state(clock) as state:
        for number in range(1, 9):
            await append(state, key, f"m{number}", base=f"s{number % 2}", policy=MANUAL)
        for limit in (1, 3, 4):
            found = await _walk_older(state, key, limit=limit, session_id="s1")
            equal(found, [1, 3, 5, 7], f"the rows of a session in pages of {limit}")
        call = _page(state, key, session_id="s1", around="m2")
        await refused(NotFoundError, call, "a page around a message of another session")


@group
async def check_hidden_rows_are_on_pages(open_state: OpenState, clock: FakeClock) -> None:
    """Show people also what no model sees."""
    key = new_key()
    async with open_state(clock) as state:
        batch = [row("m1"), row("m2", is_shown=False), row("m3")]
        await state.transcripts.append(SessionRequest(conversation=key), rows=batch)
        equal(ids_of((await _page(state, key)).items), ["m1", "m2", "m3"], "the page")


@group
async def check_foreign_cursors_are_refused(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse a cursor of another conversation or session, and one that was changed."""
    key, other = new_key(), new_key()
    async with open_state(clock) as state:
        for each in (key, other):
            await append(state, each, "m1", "m2", base="s1", policy=MANUAL)
        mine = present((await _page(state, key, limit=1)).older_cursor, "the cursor")
        theirs = present((await _page(state, other, limit=1)).older_cursor, "the cursor")
        narrow = await _page(state, key, limit=1, session_id="s1")
        changed = mine[:-2] + ("AA" if mine[-2:] != "AA" else "BB")
        for what, cursor in {
            "another conversation": theirs,
            "one of its sessions": present(narrow.older_cursor, "the cursor"),
            "a changed one": changed,
            "an empty one": "",
            "garbage": "💥'; --",
        }.items():
            await refused(CursorError, _page(state, key, cursor=cursor), f"the cursor of {what}")
        equal(ids_of((await _page(state, key, cursor=mine)).items), ["m1"], "the own one")


@group
async def check_a_cursor_into_what_was_cleared_starts_anew(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Say so when what a cursor points at was cleared, and lead on from there."""
    key = new_key()
    async with open_state(clock) as state:
        await _fill(state, key, 3)
        before = await _page(state, key)
        await state.sessions.clear(key)
        page = await _newer(state, key, before)
        equal((page.reset, page.items), (True, ()), "the page behind what was cleared")
        holds(page.generation > before.generation, "the generation did not rise")
        await append(state, key, "new")
        page = await _newer(state, key, page)
        equal((ids_of(page.items), page.reset), (["new"], False), "the page behind that")


@group.needs("durable")
async def check_cursors_survive_reopening(open_state: OpenState, clock: FakeClock) -> None:
    """Accept a cursor that was made before the store was closed."""
    key = new_key()
    async with open_state(clock) as state:
        await _fill(state, key, 5)
        page = await _page(state, key, limit=2)
    async with open_state(clock) as state:
        older = await _page(state, key, limit=2, cursor=page.older_cursor)
        equal(numbers_of(older.items), [2, 3], "the page")


async def _fill(state: AgentState, key: ConversationKey, count: int) -> None:
    await state.transcripts.append(SessionRequest(conversation=key), rows=numbered(count))


async def _page(state: AgentState, key: ConversationKey, **request: Any) -> HistoryPage:
    return await state.transcripts.page(key, request=PageRequest(**request))


async def _newer(
    state: AgentState, key: ConversationKey, page: HistoryPage, limit: int = 50
) -> HistoryPage:
    return await _page(state, key, limit=limit, cursor=page.newer_cursor, direction="newer")


async def _walk_older(state: AgentState, key: ConversationKey, **request: Any) -> list[int]:
    """Return the numbers of all rows from the live edge on, ascending."""
    page = await _page(state, key, **request)
    found = numbers_of(page.items)
    pages = 1
    while page.older_cursor is not None and pages < _MOST_PAGES:
        page = await _page(state, key, **request, cursor=page.older_cursor)
        found = numbers_of(page.items) + found
        pages += 1
    return found
