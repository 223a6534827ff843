"""Searching the conversations of one agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from vitehub_chat import open_agent_state
from vitehub_chat.conversation.conversations import Conversations
from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import ChatPolicy, PrunePolicy, SessionPolicy
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.contract_search import SearchRequest
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.material import row
from vitehub_chat.testing.clock import FakeClock

KEY = ConversationKey(None, "helper", None, "t1")
OTHER = ConversationKey(None, "helper", None, "t2")
HALF = "a\ud83d"
"""A text with half of a surrogate pair."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=[True, False], ids=["index", "no_index"])
async def state(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock
) -> AsyncIterator[AgentState]:
    url = f"file:{tmp_path}/state.db"
    async with open_agent_state(url, clock=clock, search=request.param) as opened:
        yield opened


async def store(
    state: AgentState, *texts: str, base: str = "s1", key: ConversationKey = KEY, **more: Any
) -> None:
    rows = [row(f"{key.thread} {base} {n}", text, **more) for n, text in enumerate(texts)]
    request = SessionRequest(conversation=key, base=base, policy=SessionPolicy(), user_key="ann")
    await state.transcripts.append(request, rows=rows)


def search_of(state: AgentState, user: str | None = "ann", **more: Any) -> Conversations:
    return Conversations(state, tenant=None, agent="helper", user_key=user, **more)


async def ids(conversations: Conversations, query: str, **narrowed: Any) -> list[str]:
    found = await conversations.search(query, session_id="s1", **narrowed)
    return [hit.message_id for hit in found.items]


async def test_one_session_is_searched_with_and_without_an_index(
    state: AgentState, clock: FakeClock
) -> None:
    await store(state, "green tea", "milk", "TEA again, and 茶碗")
    await store(state, "tea", base="s2")
    begin = clock.now()
    clock.advance(seconds=60)
    await store(state, "tea", key=OTHER, base="s3")
    conversations = search_of(state)
    assert await ids(conversations, "tea") == ["t1 s1 2", "t1 s1 0"]
    assert await ids(conversations, "tea", limit=1) == ["t1 s1 2"]
    assert await ids(conversations, "茶") == ["t1 s1 2"]
    assert await ids(conversations, "") == []
    assert await ids(conversations, "tea", role="assistant") == []
    assert await ids(conversations, "tea", before=begin) == []
    assert len(await ids(conversations, "tea", after=begin)) == 2
    assert await ids(conversations, "tea", conversation=KEY) == ["t1 s1 2", "t1 s1 0"]
    assert await ids(conversations, "tea", conversation=OTHER) == []
    assert await ids(search_of(state, "bob"), "tea") == []
    hit = (await conversations.search("again", session_id="s1")).items[0]
    assert (hit.snippet, hit.seq, hit.session_id, hit.score) == (
        "TEA **again**, and 茶碗",
        3,
        "s1",
        1,
    )


async def test_without_an_index_more_than_a_session_is_refused(state: AgentState) -> None:
    await store(state, "tea")
    conversations = search_of(state)
    if "search" in state.features:
        assert len((await conversations.search("tea")).items) == 1
        return
    assert state.search is None
    with pytest.raises(ConfigError, match="search") as raised:
        await conversations.search("tea")
    assert raised.value.path == "state.search"


async def test_what_is_too_old_is_not_found(state: AgentState, clock: FakeClock) -> None:
    await store(state, "old tea", created_at=clock.now())
    await store(state, "system tea", key=OTHER, role="system", created_at=clock.now())
    clock.advance(hours=2)
    third = ConversationKey(None, "helper", None, "t3")
    await store(state, "new tea", key=third, created_at=clock.now())
    prune = PrunePolicy(enabled=True, max_age=timedelta(hours=1))
    kept = search_of(state, policy=ChatPolicy(prune=prune))
    assert await ids(kept, "tea") == ["t3 s1 0", "t2 s1 0"]
    assert await ids(search_of(state), "tea") == ["t3 s1 0", "t2 s1 0", "t1 s1 0"]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"query": None}, "query"),
        ({"query": 5}, "query"),
        ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"role": 5}, "role"),
        ({"before": "yesterday"}, "before"),
        ({"after": object()}, "after"),
        ({"session_id": "a\0b"}, "session_id"),
        ({"session_id": HALF}, "session_id"),
        ({"role": HALF}, "role"),
        ({"role": "a\n"}, "role"),
        ({"role": "r" * 513}, "role"),
        ({"before": HALF}, "before"),
        ({"conversation": "t1"}, "conversation"),
        ({"conversation": ConversationKey(None, "helper", HALF, "t1")}, "conversation.channel"),
        ({"conversation": ConversationKey(None, "helper", None, HALF)}, "conversation.thread"),
        ({"conversation": ConversationKey(HALF, "helper", None, "t1")}, "conversation.tenant"),
    ],
)
async def test_a_wrong_search_is_refused(
    state: AgentState, given: dict[str, Any], path: str
) -> None:
    with pytest.raises(InputError) as raised:
        await search_of(state).search(**{"query": "tea", **given})
    assert raised.value.path == path


@pytest.mark.parametrize("given", [HALF, "a\0", 5, b"a"])
@pytest.mark.parametrize("name", ["tenant", "agent", "user_key"])
async def test_a_scope_that_can_own_nothing_is_refused(
    state: AgentState, name: str, given: Any
) -> None:
    scope: dict[str, Any] = {"tenant": None, "agent": "helper", name: given}
    with pytest.raises(InputError) as raised:
        Conversations(state, **scope)
    assert raised.value.path == name
    if state.search is None:
        return
    others: dict[str, Any] = {"agent": "helper", **scope}
    with pytest.raises(InputError) as raised:
        await state.search.search(others.pop("tenant"), **others, request=SearchRequest(query="x"))
    assert raised.value.path == name


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ({"role": HALF}, "role"),
        ({"session_id": HALF}, "session_id"),
        ({"conversation": ConversationKey(None, HALF, None, None)}, "conversation.agent"),
    ],
)
async def test_an_index_refuses_what_no_message_can_have(
    state: AgentState, request_: dict[str, Any], path: str
) -> None:
    if state.search is None:
        with pytest.raises(InputError):
            await search_of(state).search("tea", **request_)
        return
    with pytest.raises(InputError) as raised:
        await state.search.search(None, agent=None, request=SearchRequest(query="tea", **request_))
    assert raised.value.path == path


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (HALF, ["t1 s1 1", "t1 s1 0"]),
        (f"tea {HALF}", ["t1 s1 0"]),
        ("te\ud83dh", ["t1 s1 0"]),
        ("😀", ["t1 s1 0"]),
        ("\ud83d", []),
        ("\0", []),
    ],
)
async def test_half_of_a_pair_in_a_query_is_a_space(
    state: AgentState, query: str, found: list[str]
) -> None:
    await store(state, "tea with 😀 in it", "water")
    assert await ids(search_of(state), query) == found


async def test_a_role_is_any_text_that_messages_have_as_theirs(state: AgentState) -> None:
    for role in ("user", "tool", "developer", ""):
        await store(state, "tea", role=role, base=f"of {role}")
    for role in ("user", "tool", "developer", ""):
        found = await search_of(state).search("tea", session_id=f"of {role}", role=role)
        assert [hit.role for hit in found.items] == [role]
        others = await search_of(state).search("tea", session_id=f"of {role}", role="zz")
        assert others.items == ()


async def test_a_limit_above_50_is_50(state: AgentState) -> None:
    await store(state, *["tea"] * 60)
    assert len(await ids(search_of(state), "tea", limit=1000)) == 50
