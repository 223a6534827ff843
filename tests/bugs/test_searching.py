"""Search over past conversations."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.bugs.support import NAME, agent_on, key_of, say
from vitehub_chat import open_agent_state
from vitehub_chat.conversation.conversations import Conversations
from vitehub_chat.errors import InputError, NotFoundError
from vitehub_chat.model.folding import fold_text
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.sql.named import load_migrations
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.material import row

TEXTS = (
    "Der Bahnhof ist schön, the station is fine",
    "北京站很大。我在火车站等你 at the station",
    "東京駅で会いましょう。カフェの前です",
    "สถานีรถไฟอยู่ที่ไหน where is it",
    "기차역에서 만나요",
    "كيف حالك؟ привет, мир",
    "foo-bar a/b C++ 100% x_y 🎉🎊 it's",
    "",
)


def substrings(text: str) -> set[str]:
    """Return every word of a text, and all of its parts of two to four characters."""
    found = set(text.split())
    for size in (2, 3, 4):
        found |= {text[at : at + size] for at in range(len(text) - size + 1)}
    return {each for each in found if len(each) > 1 and not any(map(str.isspace, each))}


async def store(state: SteppedAgentState, texts: Any, thread: str = "t", **session: Any) -> None:
    rows = [row(f"{thread}{number}", text) for number, text in enumerate(texts)]
    request = SessionRequest(conversation=key_of(thread), **session)
    await state.transcripts.append(request, rows=rows)


async def find(state: SteppedAgentState, query: str, **narrowed: Any) -> list[str]:
    conversations = Conversations(state, tenant=None, agent=NAME)
    return [hit.message_id for hit in (await conversations.search(query, **narrowed)).items]


async def test_L134_every_part_of_every_text_is_found_in_any_script(
    state: SteppedAgentState,
) -> None:
    await store(state, TEXTS)
    for query in sorted(set().union(*map(substrings, TEXTS))):
        expected = {f"t{n}" for n, text in enumerate(TEXTS) if fold_text(query) in fold_text(text)}
        assert (query, set(await find(state, query, limit=50))) == (query, expected)
        assert {f"t{n}" for n, text in enumerate(TEXTS) if query in text} <= expected


@pytest.mark.parametrize(
    "query",
    ["a/b", '"x,', "foo-bar", "AND", "*", ":", "(", "🎉", "", "NOT (", "'; --", "\\", "%", "x_y"],
)
async def test_L319_no_query_is_a_syntax_error(any_state: SteppedAgentState, query: str) -> None:
    await store(any_state, TEXTS)
    expected = [f"t{n}" for n, text in enumerate(TEXTS) if query and query in text]
    assert await find(any_state, query) == expected[::-1]


async def test_L173_a_search_never_leaves_its_owner(state: SteppedAgentState) -> None:
    for user in ("ann", "bob"):
        await store(state, [f"the secret of {user}"], user, user_key=user)
    ann = Conversations(state, tenant=None, agent=NAME, user_key="ann")
    hits = (await ann.search("secret")).items
    assert [(hit.message_id, hit.snippet) for hit in hits] == [
        ("ann0", "the **secret** of ann"),
    ]
    for asked in ({"conversation": key_of("bob")}, {"role": "user"}, {"limit": 50}):
        found = (await ann.search("bob", **asked)).items
        assert found == ()
    with pytest.raises(NotFoundError):
        await ann.get(key_of("bob"), None, around="bob0")
    with pytest.raises(InputError):
        Conversations(state, tenant=None, agent=NAME, user_key="")
    other = Conversations(state, tenant="other", agent=NAME, user_key="ann")
    assert (await other.search("secret", conversation=key_of("ann"))).items == ()


async def test_L306_nothing_is_left_of_a_message_that_is_gone(
    url: str, path: Path, state: SteppedAgentState
) -> None:
    agent = agent_on(state)
    await say(agent, "Marker one")
    await say(agent, "marker two")
    await agent.conversation("t").delete_message("Marker one")
    assert await find(state, "marker", role="user") == ["marker two"]
    await agent.conversation("t").clear(delete_session=True)
    assert await find(state, "marker") == []
    if url.startswith("file:"):
        await state.aclose()
        assert b"marker" not in (await asyncio.to_thread(path.read_bytes)).lower()


async def test_L306_an_older_file_is_searched_whole_from_the_first_time_on(path: Path) -> None:
    count = 450
    await make_old(path, [f"Tea number {number}" for number in range(count)])
    async with open_agent_state(f"file:{path}") as opened:
        assert isinstance(opened, SteppedAgentState)
        assert await find(opened, "TEA", limit=3) == ["t449", "t448", "t447"]
        assert (
            await find(opened, "number 7 tea", limit=50)
            == [f"t{number}" for number in range(count - 1, -1, -1) if "7" in str(number)][:50]
        )
        assert await find(opened, "tea 0", limit=50, session_id="no") == []
    assert await asyncio.to_thread(texts_left, path) == 0


async def test_L306_migrating_makes_older_messages_ready(path: Path) -> None:
    await make_old(path, ["tea"] * 450)
    async with open_agent_state(f"file:{path}") as opened:
        assert await asyncio.to_thread(texts_left, path) == 450
        assert (await opened.admin.migrate()).texts == 450
        assert (await opened.admin.migrate()).texts == 0
    assert await asyncio.to_thread(texts_left, path) == 0


async def make_old(path: Path, texts: list[str]) -> None:
    """Make a file as it was before messages could be searched."""
    async with open_agent_state(f"file:{path}", search=False) as opened:
        assert isinstance(opened, SteppedAgentState)
        await store(opened, texts)
    await asyncio.to_thread(forget_texts, path)


def forget_texts(path: Path) -> None:
    """Take back the migration that made room for texts."""
    newest = len(load_migrations("sqlite", "p_"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE vitehub_agent_state_rows DROP COLUMN search_text")
        connection.execute("DELETE FROM vitehub_agent_state_schema WHERE version = ?", (newest,))
        connection.commit()


def texts_left(path: Path) -> int:
    """Count the messages of which no text is kept."""
    query = "SELECT count(*) FROM vitehub_agent_state_rows WHERE search_text IS NULL"
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(query).fetchone()[0])


async def test_L256_a_search_in_200_sessions_is_two_reads(state: SteppedAgentState) -> None:
    for number in range(200):
        await store(state, ["tea"], f"{number}-", user_key="ann")
    reads = 0
    read_with, index = state.read_with, state.search
    assert index is not None
    seeker = index._seeker
    find_rows = seeker.find

    async def counted(*arguments: Any) -> Any:
        nonlocal reads
        reads += 1
        return await read_with(*arguments)

    async def counted_find(*arguments: Any) -> Any:
        nonlocal reads
        reads += 1
        return await find_rows(*arguments)

    state.read_with = counted  # type: ignore[method-assign]
    seeker.find = counted_find  # type: ignore[method-assign]
    ann = Conversations(state, tenant=None, agent=NAME, user_key="ann")
    assert len((await ann.search("tea", limit=50)).items) == 50
    assert reads == 2


async def test_the_operator_sees_every_owner_of_exactly_one_tenant(
    state: SteppedAgentState,
) -> None:
    for tenant in (None, "a", "a%"):
        request = SessionRequest(conversation=ConversationKey(tenant, NAME, None, "t"))
        await state.transcripts.append(request, rows=[row("m1", "tea")])
    for tenant in (None, "a", "a%", "%"):
        found = (await Conversations(state, tenant=tenant, agent=NAME).search("tea")).items
        assert [hit.conversation.tenant for hit in found] == ([] if tenant == "%" else [tenant])
