"""Pages of history."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bugs.support import agent_on
from vitehub_chat import open_agent_state
from vitehub_chat.conversation.conversation import Conversation
from vitehub_chat.errors import InputError
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.testing.clock import FakeClock


async def fill(conversation: Conversation, count: int) -> list[str]:
    ids = [f"m{number}" for number in range(count)]
    await conversation.append([{"id": each, "role": "user", "parts": []} for each in ids])
    return ids


async def walk(
    conversation: Conversation, limit: int, direction: str = "older"
) -> list[list[str | None]]:
    """Return the ids of all pages, from one end to the other."""
    page = await conversation.history(limit=limit)
    pages = [page]
    while page.older_cursor is not None:
        page = await conversation.history(limit=limit, cursor=page.older_cursor)
        pages.append(page)
    if direction == "newer":
        pages = [page]
        while not page.at_live_edge:
            page = await conversation.history(
                limit=limit, cursor=page.newer_cursor, direction="newer"
            )
            pages.append(page)
    return [[row.message.id for row in page.items] for page in pages]


@pytest.mark.parametrize("count", [0, 1, 5, 6, 7])
async def test_L265_a_cursor_means_the_same_in_every_store(path: Path, count: int) -> None:
    found = []
    for url in ("memory:", f"file:{path}"):
        async with open_agent_state(url, clock=FakeClock()) as state:
            conversation = agent_on(state).conversation("t")
            await fill(conversation, count)
            both = [await walk(conversation, 3, way) for way in ("older", "newer")]
            assert [each for page in reversed(both[0]) for each in page] == [
                f"m{number}" for number in range(count)
            ]
            found.append(both)
            pages = [await conversation.history(limit=3)]
            while pages[-1].older_cursor is not None:
                pages.append(await conversation.history(limit=3, cursor=pages[-1].older_cursor))
            assert sum(len(page.items) for page in pages) == count
            assert all(page.items for page in pages[1:])
    assert found[0] == found[1]


async def test_L189_a_row_changed_between_pages_comes_once(state: SteppedAgentState) -> None:
    conversation = agent_on(state).conversation("t")
    ids = await fill(conversation, 205)
    page = await conversation.history(limit=50)
    seen = [row.message.id for row in page.items]
    number = 0
    while page.older_cursor is not None:
        for changed in (f"m{number}", f"m{204 - number}"):
            again = await conversation.append(
                [{"id": changed, "role": "user", "parts": [{"type": "text", "text": "new"}]}]
            )
            assert again[0].seq == ids.index(changed) + 1
        await conversation.append([{"id": f"late{number}", "role": "user", "parts": []}])
        number += 1
        page = await conversation.history(limit=50, cursor=page.older_cursor)
        seen = [*(row.message.id for row in page.items), *seen]
    assert seen == ids


async def test_L284_a_limit_gives_the_newest_in_their_order(state: SteppedAgentState) -> None:
    conversation = agent_on(state).conversation("t")
    await fill(conversation, 10)
    page = await conversation.history(limit=3)
    assert [(row.seq, row.message.id) for row in page.items] == [(8, "m7"), (9, "m8"), (10, "m9")]
    assert len((await conversation.history(limit=1000)).items) == 10
    for limit in (0, -1, True, 2.0, "3"):
        with pytest.raises(InputError):
            await conversation.history(limit=limit)  # type: ignore[arg-type]
