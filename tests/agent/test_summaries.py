"""Summaries of both kinds, as application code reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agent.support import TRANSCRIPT, agent_of, run, say, turn
from vitehub_chat import Agent
from vitehub_chat.errors import InputError


async def roll(agent: Agent, text: str, anchor: int, session_id: str | None = None) -> None:
    key = agent.conversation("t").key
    summaries = (await agent.open_state()).summaries
    since = await summaries.get_rolling(key, session_id=session_id)
    assert since is not None
    await summaries.commit_roll(
        key, session_id=session_id, since=since, summary=text, anchor=anchor, model="small"
    )


HYBRID = {"strategy": "hybrid", "idle_timeout_ms": 3_600_000}
MANUAL = {"strategy": "manual"}


async def talk_in(agent: Agent, *session_ids: str | None) -> None:
    """Say something in some sessions of one conversation, one after the other."""
    for number, name in enumerate(session_ids):
        facts: dict[str, Any] = {} if name is None else {"metadata": {"sessionId": name}}
        await run(agent, turn(say(f"hi {number}", **facts)))


async def test_a_rolled_summary_says_what_it_covers(url: str) -> None:
    async with agent_of("echo", url) as agent:
        conversation = agent.conversation("t")
        assert await conversation.get_summary("rolling") is None
        await run(agent, turn(say("hi", "m1")))
        assert await conversation.get_summary("rolling") is None
        await roll(agent, "so far", 3)
        found = await conversation.get_summary("rolling")
        assert found is not None
        assert (found.text, found.through_seq) == ("so far", 2)
        assert (found.version, found.model) == (1, "small")
        assert await conversation.get_summary() is None


async def test_both_kinds_are_exported(url: str) -> None:
    async with agent_of("echo", url) as agent:
        conversation = agent.conversation("t")
        await run(agent, turn(say("hi", "m1")))
        await conversation.save_summary("by hand")
        await roll(agent, "rolled", 2)
        lines: list[dict[str, Any]] = [json.loads(line) async for line in conversation.export()]
        summaries = [line for line in lines if line["type"] == "summary"]
        facts = ("kind", "session_id", "text", "through_seq", "model")
        assert [tuple(map(line.get, facts)) for line in summaries] == [
            ("manual", None, "by hand", None, None),
            ("rolling", None, "rolled", 1, "small"),
        ]
        assert lines[-1]["summaries"] == 2


async def test_another_kind_is_refused(url: str) -> None:
    other: Any = "other"
    async with agent_of("echo", url) as agent:
        with pytest.raises(InputError, match="kind"):
            await agent.conversation("t").get_summary(other)


async def test_without_a_session_the_rolled_summary_is_that_of_the_session_used_last(
    url: str,
) -> None:
    async with agent_of("echo", url, sessions=HYBRID) as agent:
        assert await agent.conversation("t").get_summary("rolling") is None
        await talk_in(agent, "a", "b")
        await roll(agent, "about a", 2, "a")
        assert await agent.conversation("t").get_summary("rolling") is None
        await roll(agent, "about b", 4, "b")
        found = await agent.conversation("t").get_summary("rolling")
        assert (found and found.text) == "about b"
        await talk_in(agent, "a")
        found = await agent.conversation("t").get_summary("rolling")
        assert (found and found.text) == "about a"
        narrowed = agent.conversation("t", session_id="b")
        found = await narrowed.get_summary("rolling")
        assert (found and found.text) == "about b"


async def test_an_export_without_a_session_has_the_summaries_of_all_sessions(url: str) -> None:
    async with agent_of("echo", url, sessions=MANUAL) as agent:
        await talk_in(agent, "a", None, "b")
        await agent.conversation("t").save_summary("by hand")
        await agent.conversation("t", session_id="a").save_summary("by hand, a")
        for name, anchor in (("a", 2), (None, 4), ("b", 6)):
            await roll(agent, f"about {name}", anchor, name)
        found = {}
        for session_id in (None, "a"):
            conversation = agent.conversation("t", session_id=session_id)
            lines = [json.loads(line) async for line in conversation.export()]
            summaries = [line for line in lines if line["type"] == "summary"]
            assert lines[-1]["summaries"] == len(summaries)
            facts = ("kind", "session_id", "text")
            found[session_id] = [tuple(line[name] for name in facts) for line in summaries]
        of_a = [("manual", "a", "by hand, a"), ("rolling", "a", "about a")]
        assert found["a"] == of_a
        assert found[None][0] == ("manual", None, "by hand")
        others = [("rolling", None, "about None"), ("rolling", "b", "about b")]
        assert sorted(map(str, found[None][1:])) == sorted(map(str, [*of_a, *others]))


async def test_one_session_comes_with_its_summaries_and_its_budget(url: str) -> None:
    context: dict[str, Any] = {"estimator": "runes"}
    options: Any = {"trigger_history": TRANSCRIPT, "context": context}
    async with agent_of("echo", url, sessions=MANUAL, **options) as agent:
        await talk_in(agent, "a", "b")
        await roll(agent, "about a", 2, "a")
        await agent.conversation("t", session_id="a").save_summary("by hand")
        key = agent.conversation("t").key
        found = await agent.conversations(tenant=None).session(key, "a")
        assert (found.session_id, found.message_count) == ("a", 2)
        assert found.rolling is not None
        assert found.manual is not None
        assert found.context_budget is not None
        assert (found.rolling.text, found.rolling.through_seq) == ("about a", 1)
        assert found.manual.text == "by hand"
        assert found.context_budget.used == len("hi 0")
        other = await agent.conversations(tenant=None).session(key, "b")
        assert (other.rolling, other.manual) == (None, None)
