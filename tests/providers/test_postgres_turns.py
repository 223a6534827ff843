"""Whole turns with a state in PostgreSQL, of one process and of two."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.postgres_server import Place
from tests.providers.sqlite_helpers import start
from vitehub_chat import chat, define_agent, run_agent_trigger
from vitehub_chat.agent.definition import Agent
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.keys import ConversationKey

pytestmark = pytest.mark.service

KEY = ConversationKey(None, "support", "portal", "t1")

TWENTY_TURNS = """
import asyncio, sys
from vitehub_chat import chat, define_agent, run_agent_trigger

agent = define_agent(
    name="support",
    driver="echo",
    capabilities=[chat(concurrency="queue")],
    state={"url": sys.argv[1], "table_prefix": sys.argv[2]},
)

async def main(name):
    async with agent:
        for number in range(20):
            said = f"{name}{number}"
            message = {"id": said, "role": "user", "parts": [{"type": "text", "text": said}]}
            given = {"messages": [message], "run": {"channelId": "portal", "threadId": "t1"}}
            result = await run_agent_trigger(agent, "chat.message", given)
            print(result.status, result.text, flush=True)

asyncio.run(main(sys.argv[3]))
"""


def agent_in(place: Place) -> Agent:
    return define_agent(
        name="support",
        driver="echo",
        capabilities=[chat(concurrency="queue")],
        state={"url": place.server.url, "table_prefix": place.prefix},
    )


def message(text: str) -> dict[str, Any]:
    said = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"messages": [said], "run": {"channelId": "portal", "threadId": "t1"}}


async def texts_in(agent: Agent) -> list[tuple[int, str, str]]:
    conversation = agent.conversation(KEY)
    rows = [row async for row in conversation.export()]
    return [(row.seq, row.message.role, row.message.text) for row in rows]


async def test_a_turn_is_answered_once_and_stored(place: Place) -> None:
    async with agent_in(place) as agent:
        first = await run_agent_trigger(agent, "chat.message", message("hello"))
        again = await run_agent_trigger(agent, "chat.message", message("hello"))
        assert (first.status, again.text) == ("complete", first.text)
        assert await texts_in(agent) == [(1, "user", "hello"), (2, "assistant", first.text)]
