"""Whole turns with a state in PostgreSQL, of one process and of two."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.postgres_server import Place
from tests.providers.sqlite_helpers import start
from vitehub_chat import Agent, chat, define_agent, run_agent_trigger
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.values import PageRequest

pytestmark = pytest.mark.service

KEY = ConversationKey(None, "support", "portal", "t1")

TWENTY_TURNS = """
import asyncio, sys
from vitehub_chat import chat, define_agent, run_agent_trigger

agent = define_agent(
    name="support",
    driver="echo",
    capabilities=[
        chat(
            concurrency="queue",
            trigger_history={"source": "transcript", "max_messages": 200},
        )
    ],
    state={"url": sys.argv[1], "table_prefix": sys.argv[2]},
)

async def main(name):
    async with agent:
        for number in range(20):
            said = f"{name}{number}"
            message = {"id": said, "role": "user", "parts": [{"type": "text", "text": said}]}
            given = {"messages": [message], "run": {"channelId": "portal", "threadId": "t1"}}
            result = await run_agent_trigger(agent, "chat.message", given)
            print(result.text, flush=True)

asyncio.run(main(sys.argv[3]))
"""


LEFT_OPEN = """
import asyncio, sys
from vitehub_chat import chat, define_agent, run_agent_trigger

agent = define_agent(
    name="support", driver="echo", capabilities=[chat()], state=sys.argv[1]
)
message = {"role": "user", "parts": [{"type": "text", "text": "hello"}]}
given = {"messages": [message], "run": {"channelId": "portal", "threadId": "t1"}}
print(asyncio.run(run_agent_trigger(agent, "chat.message", given)).text, flush=True)
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


async def texts_in(place: Place) -> list[tuple[int, str, str]]:
    async with place.open() as state:
        rows = await state.transcripts.page(KEY, request=PageRequest(limit=100))
    return [(row.seq, row.message.role, row.message.text) for row in rows.items]


async def test_a_turn_is_answered_once_and_stored(place: Place) -> None:
    async with agent_in(place) as agent:
        first = await run_agent_trigger(agent, "chat.message", message("hello"))
        again = await run_agent_trigger(agent, "chat.message", message("hello"))
        assert (first.status, first.text) == ("complete", "You said: hello")
        assert again.text == first.text
    assert await texts_in(place) == [(1, "user", "hello"), (2, "assistant", first.text)]


def test_an_agent_that_is_left_open_does_not_hang_the_exit(place: Place) -> None:
    process = start(LEFT_OPEN, place.server.url)
    answer, _ = process.communicate(timeout=60)
    assert (answer, process.returncode) == ("You said: hello\n", 0)


async def test_two_processes_with_twenty_turns_each_give_forty_answers_in_order(
    place: Place,
) -> None:
    processes = [start(TWENTY_TURNS, place.server.url, place.prefix, name) for name in "ab"]
    answers = [process.communicate(timeout=100)[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert [len(each) for each in answers] == [20, 20]
    rows = await texts_in(place)
    assert [seq for seq, _, _ in rows] == list(range(1, 81))
    assert [role for _, role, _ in rows] == ["user", "assistant"] * 40
    said = [text for _, role, text in rows if role == "user"]
    for name in "ab":
        assert [each for each in said if each[0] == name] == [f"{name}{n}" for n in range(20)]
    expected = [answer_to(text, earlier=2 * number) for number, text in enumerate(said)]
    assert [text for _, role, text in rows if role == "assistant"] == expected
    assert sorted(text for each in answers for text in each) == sorted(expected)


def answer_to(text: str, *, earlier: int) -> str:
    """Return what the driver says to a message that so many others came before."""
    return f"You said: {text}" + (f" ({earlier} earlier messages)" if earlier else "")
