"""Summaries of both kinds, as application code reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agent.support import agent_of, run, say, turn
from vitehub_chat import Agent
from vitehub_chat.errors import InputError


async def roll(agent: Agent, text: str, anchor: int) -> None:
    key = agent.conversation("t").key
    summaries = (await agent.open_state()).summaries
    since = await summaries.get_rolling(key, session_id=None)
    assert since is not None
    await summaries.commit_roll(key, session_id=None, since=since, summary=text, anchor=anchor)


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
        assert await conversation.get_summary() is None


async def test_both_kinds_are_exported(url: str) -> None:
    async with agent_of("echo", url) as agent:
        conversation = agent.conversation("t")
        await run(agent, turn(say("hi", "m1")))
        await conversation.save_summary("by hand")
        await roll(agent, "rolled", 2)
        lines: list[dict[str, Any]] = [json.loads(line) async for line in conversation.export()]
        summaries = [line for line in lines if line["type"] == "summary"]
        found = [(line["kind"], line["text"], line["through_seq"]) for line in summaries]
        assert found == [("manual", "by hand", None), ("rolling", "rolled", 1)]
        assert lines[-1]["summaries"] == 2


async def test_another_kind_is_refused(url: str) -> None:
    other: Any = "other"
    async with agent_of("echo", url) as agent:
        with pytest.raises(InputError, match="kind"):
            await agent.conversation("t").get_summary(other)
