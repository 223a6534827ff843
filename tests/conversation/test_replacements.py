"""Turns that take the place of stored messages: edits and answers made anew."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from vitehub_chat import (
    PreparedInvocation,
    RunResult,
    chat,
    define_agent,
    prepare_agent_trigger,
    run_agent_trigger,
)
from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.config.trigger_input import parse_chat_message
from vitehub_chat.conversation.payloads import decode_request, encode_request
from vitehub_chat.errors import ChatBusyError, NotFoundError
from vitehub_chat.model.messages import Message

WINDOW: Any = {"source": "transcript", "max_messages": 9}


class Speaker:
    """A driver that says how often it was called, and may be held."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def __call__(self, call: DriverCall) -> str:
        """Answer with the number of the call."""
        self.seen.append([message.text for message in call.messages])
        await self.may_go_on.wait()
        return f"a{len(self.seen)}"


@pytest.fixture
def speaker() -> Speaker:
    return Speaker()


@pytest.fixture(params=["memory:", "file:"])
async def agent(
    request: pytest.FixtureRequest, tmp_path: Path, speaker: Speaker
) -> AsyncIterator[Agent]:
    url = f"file:{tmp_path}/state.db" if request.param == "file:" else request.param
    capabilities = [chat(trigger_history=WINDOW, concurrency="queue")]
    async with define_agent(
        name="editor", driver=speaker, capabilities=capabilities, state=url
    ) as opened:
        yield opened


def given(message_id: str, text: str, replaces: tuple[str, str] | None = None) -> dict[str, Any]:
    message = {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}
    more: dict[str, Any] = {}
    if replaces is not None:
        more["replace"] = {"kind": replaces[0], "messageId": replaces[1]}
    return {"messages": [message], "run": {"threadId": "t"}, **more}


async def say(agent: Agent, *arguments: Any) -> RunResult:
    return await run_agent_trigger(agent, "chat.message", given(*arguments))


async def prepare(agent: Agent, *arguments: Any) -> PreparedInvocation:
    return await prepare_agent_trigger(agent, "chat.message", given(*arguments))


async def stored(agent: Agent) -> list[tuple[int, str]]:
    page = await agent.conversation("t").history()
    return [(row.seq, row.message.text) for row in page.items]


def answer_of(result: RunResult) -> str:
    assert isinstance(result.message, Message)
    assert result.message.id is not None
    return result.message.id


@pytest.mark.parametrize("message_id", ["m2", "m2-edited"])
async def test_an_edit_cuts_from_its_message_on_and_runs(
    agent: Agent, speaker: Speaker, message_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("m1", "m2", "m3"):
        await say(agent, name, name)
    with caplog.at_level(logging.INFO, logger="vitehub_chat"):
        result = await say(agent, message_id, "better", ("edit", "m2"))
    assert (result.status, result.text) == ("complete", "a4")
    assert speaker.seen[-1] == ["m1", "a1", "better"]
    assert await stored(agent) == [(1, "m1"), (2, "a1"), (7, "better"), (8, "a4")]
    (record,) = [each for each in caplog.records if each.message == "chat.history.truncated"]
    assert vars(record)["deleted"] == 4


async def test_an_answer_is_made_anew_although_its_question_is_known(
    agent: Agent, speaker: Speaker
) -> None:
    await say(agent, "m1", "m1")
    second = await say(agent, "m2", "m2")
    assert (await say(agent, "m2", "m2")).prepared is None
    result = await say(agent, "m2", "m2", ("regenerate", answer_of(second)))
    assert (result.text, speaker.seen[-1]) == ("a3", ["m1", "a1", "m2"])
    assert await stored(agent) == [(1, "m1"), (2, "a1"), (3, "m2"), (5, "a3")]
    again = await say(agent, "m2", "m2")
    assert (again.text, again.prepared, len(speaker.seen)) == ("a3", None, 3)


async def test_what_a_replacement_would_see_is_told_and_nothing_is_written(agent: Agent) -> None:
    for name in ("m1", "m2", "m3"):
        await say(agent, name, name)
    before = await stored(agent)
    edit = await prepare(agent, "m2", "better", ("edit", "m2"))
    assert [message.text for message in edit.messages] == ["m1", "a1", "better"]
    answer = (await agent.conversation("t").history()).items[3]
    anew = await prepare(agent, "m2", "m2", ("regenerate", answer.message.id))
    assert [message.text for message in anew.messages] == ["m1", "a1", "m2"]
    assert await stored(agent) == before


async def test_while_a_turn_runs_nothing_is_replaced(agent: Agent, speaker: Speaker) -> None:
    await say(agent, "m1", "m1")
    speaker.may_go_on.clear()
    running = asyncio.ensure_future(say(agent, "m2", "m2"))
    async with asyncio.timeout(30):
        while len(speaker.seen) < 2:  # noqa: ASYNC110 - a driver tells nobody
            await asyncio.sleep(0)
    with pytest.raises(ChatBusyError) as caught:
        await say(agent, "m1", "better", ("edit", "m1"))
    speaker.may_go_on.set()
    assert (caught.value.code, (await running).text) == ("turn_in_progress", "a2")
    assert await stored(agent) == [(1, "m1"), (2, "a1"), (3, "m2"), (4, "a2")]
    assert (await say(agent, "m1", "better", ("edit", "m1"))).text == "a3"


async def test_what_is_not_stored_is_not_replaced(agent: Agent, speaker: Speaker) -> None:
    for call in (say, prepare):
        with pytest.raises(NotFoundError):
            await call(agent, "m1", "m1", ("edit", "m0"))
    await say(agent, "m1", "m1")
    for call in (say, prepare):
        with pytest.raises(NotFoundError):
            await call(agent, "m1", "better", ("edit", "m0"))
    assert await stored(agent) == [(1, "m1"), (2, "a1")]
    assert ((await say(agent, "m1", "m1")).text, len(speaker.seen)) == ("a1", 1)


async def test_an_edit_stays_in_the_session_of_its_message(
    tmp_path: Path, speaker: Speaker
) -> None:
    sessions: Any = {"strategy": "hybrid", "idle_timeout_ms": 60_000}
    capabilities = [chat(trigger_history=WINDOW, sessions=sessions)]
    async with define_agent(
        name="editor", driver=speaker, capabilities=capabilities, state=f"file:{tmp_path}/s.db"
    ) as agent:
        begun = await say(agent, "m1", "m1")
        second = given("m2", "m2")
        second["messages"][0]["createdAt"] = "2100-01-01T00:00:00Z"
        later = await run_agent_trigger(agent, "chat.message", second)
        assert begun.session_id != later.session_id
        edited = await say(agent, "m1", "better", ("edit", "m1"))
        assert edited.session_id == begun.session_id
        assert [text for _, text in await stored(agent)] == ["m2", "a2", "better", "a3"]


async def test_without_a_state_an_ended_turn_is_run_anew(speaker: Speaker) -> None:
    agent = define_agent(name="editor", driver=speaker, capabilities=[chat()])
    await say(agent, "m1", "m1")
    assert (await say(agent, "m1", "m1")).text == "a1"
    assert (await say(agent, "m1", "m1", ("regenerate", "x"))).text == "a2"
    assert (await say(agent, "m1", "m1")).text == "a2"
    await agent.aclose()


def test_who_runs_a_message_for_its_caller_knows_what_it_replaces() -> None:
    request = parse_chat_message(given("m1", "better", ("edit", "m1")))
    assert request.replace is not None
    found = decode_request(encode_request(request, request.messages))
    assert (found.replace, found.replaces) == (request.replace, "m1")
