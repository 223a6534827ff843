"""Sessions that begin after silence, and what a restart must not change."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.bugs.support import WINDOW, agent_on, given, key_of, run_script, say
from vitehub_chat import chat, open_agent_state, run_agent_trigger
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.errors import ConfigError, NotFoundError
from vitehub_chat.model.events import (
    ApprovalRequested,
    FileProduced,
    NativeMessages,
    ReasoningDelta,
    SourceFound,
    StepStarted,
    ToolCall,
    ToolResult,
    Usage,
)
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.testing.clock import FakeClock

IDLE_MS = 1_800_000
IDLE = timedelta(milliseconds=IDLE_MS)


async def test_L252_silence_longer_than_the_timeout_begins_a_session_and_is_told(
    state: SteppedAgentState, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    for strategy in ("idle-timeout", "hybrid"):
        with pytest.raises(ConfigError):
            chat(sessions={"strategy": strategy, "idle_timeout_ms": 0})
    off = agent_on(state, sessions={"idle_timeout_ms": 0})
    sessions = [(await say(off, f"off{n}", "off")).session_id for n in range(2)]
    assert sessions == [None, None]

    agent = agent_on(state, sessions={"idle_timeout_ms": IDLE_MS})
    with caplog.at_level(logging.INFO, "vitehub_chat"):
        first = (await say(agent, "A")).session_id
        clock.advance(milliseconds=IDLE_MS)
        assert (await say(agent, "B")).session_id == first
        clock.advance(milliseconds=IDLE_MS + 1)
        assert (await say(agent, "C")).session_id != first
    told = [record.message for record in caplog.records]
    assert told.count("chat.session.started") == 2


async def test_L120_silence_is_measured_per_thread_and_late_or_future_times_do_no_harm(
    state: SteppedAgentState, clock: FakeClock
) -> None:
    agent = agent_on(state, sessions={"idle_timeout_ms": IDLE_MS})

    async def at(text: str, time: Any, thread: str = "t") -> str | None:
        return (await say(agent, text, thread, createdAt=time)).session_id

    begun = clock.now()
    first = await at("A", begun)
    other = await at("B", begun, "u")
    clock.advance(milliseconds=IDLE_MS)
    assert await at("C", clock.now()) == first
    assert await at("late", begun - IDLE) == first
    assert await at("future", clock.now() + timedelta(days=400)) != first
    # A stamp from the future does not keep the session open: activity is at most now.
    clock.advance(milliseconds=IDLE_MS + 1)
    newest = await at("D", clock.now())
    assert newest not in {None, first, other}
    assert await at("E", clock.now(), "u") != other
    infos = (await agent.conversations().sessions(limit=100)).items
    assert max(info.last_message_at for info in infos) == clock.now()


async def test_L159_a_restart_between_turns_changes_no_window(path: Path) -> None:
    """The same turns with a new state for each of them, and with one state for all."""
    url = f"file:{path}"
    options: dict[str, Any] = {
        "trigger_history": {**WINDOW, "max_messages": 4, "max_age_ms": 60_000},
        "sessions": {"strategy": "hybrid", "idle_timeout_ms": 40_000},
        "concurrency": "queue",
    }
    steps = [10, 10, 30, 41, 5, 5, 5, 5, 39, 1]

    async def run(thread: str, *, restarts: bool) -> list[Any]:
        clock, seen = FakeClock(), []
        state = await open_agent_state(url, clock=clock).__aenter__()
        for number, seconds in enumerate(steps):
            clock.advance(seconds=seconds)
            if restarts:
                await state.aclose()
                state = await open_agent_state(url, clock=clock).__aenter__()
            result = await say(agent_on(state, **options), f"m{number}", thread)
            assert result.prepared is not None
            kept = [each.text for each in result.prepared.messages]
            reasons = [(each.seq, each.reason) for each in result.prepared.selection]
            seen.append((kept, reasons, result.session_id))
        await state.aclose()
        return seen

    assert await run("a", restarts=True) == await run("b", restarts=False)


READ = """
import asyncio, sys
from vitehub_chat import open_agent_state
from vitehub_chat.conversation.conversation import Conversation
from vitehub_chat.model.clock import SystemClock
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.testing.clock import FakeClock

async def main(url):
    async with open_agent_state(url, clock=FakeClock()) as state:
        key = ConversationKey(None, "helper", None, "t")
        conversation = Conversation(state, key, session_id="s")
        page = await conversation.history()
        print(repr([row for row in page.items]))
        print(repr(await conversation.get_summary()))
        print(repr(await state.sessions.get(key, session_id="s")))

asyncio.run(main(sys.argv[1]))
"""


async def test_L199_what_is_stored_equals_itself_in_a_new_process(path: Path) -> None:
    async def answer(_call: DriverCall) -> AsyncIterator[Any]:
        yield StepStarted()
        yield ReasoningDelta("r", "because", "openai", "sig", {"id": "x"})
        yield "text"
        yield ToolCall("c1", "look", {"deep": [{"a": None}, 1.5, True]})
        yield ToolResult("c1", "look", {"found": ["é", None]})
        yield ToolCall("c2", "look")
        yield ToolResult("c2", "look", status="failed", error="no")
        yield ToolCall("c3", "look", [])
        yield ApprovalRequested("a3", "c3")
        yield SourceFound("s1", "https://example.org", "Title")
        yield SourceFound("s2", media_type="text/plain")
        yield FileProduced("image/png", "data:image/png;base64,AAAA", "x.png")
        yield NativeMessages("callable/1", [{"kind": "response"}])
        yield Usage(3, 4, "model")

    url = f"file:{path}"
    async with open_agent_state(url, clock=FakeClock()) as state:
        agent = agent_on(state, answer, sessions=True, identity=lambda _context: "user")
        parts = [
            {"type": "text", "text": "hi"},
            {"type": "data-x", "id": "d", "data": {"a": [1, None]}},
            {"type": "file", "mediaType": "image/png", "url": "https://example.org/a.png"},
            {"type": "unheard", "of": {"x": 1}},
        ]
        message = {
            "id": "u1",
            "role": "user",
            "parts": parts,
            "metadata": {"nested": {"list": [1, 2.5, None, "x"]}},
            "createdAt": "2025-12-31T23:59:59.123456+02:00",
        }
        await run_agent_trigger(
            agent,
            "chat.message",
            {
                "messages": [message],
                "run": {"threadId": "t"},
                "session": {"id": "s"},
                "chatId": "chat",
                "userKey": "owner",
            },
        )
        conversation = agent.conversation("t", session_id="s")
        await conversation.save_summary("short")
        rows = (await conversation.history()).items
        here = [
            repr(list(rows)),
            repr(await conversation.get_summary()),
            repr(await state.sessions.get(conversation.key, session_id="s")),
        ]
        assert rows[1].usage is not None
        assert rows[1].native is not None
        await agent.aclose()
    there = await asyncio.to_thread(run_script, READ, url)
    assert there.splitlines() == here
    assert json.loads(json.dumps(rows[0].message.to_json()))["parts"] == parts


@pytest.mark.parametrize("session_id", [None, "s"])
async def test_L119_sessions_begun_in_one_instant_have_two_ids_and_no_common_history(
    state: SteppedAgentState, session_id: str | None
) -> None:
    seen: list[list[str]] = []

    def answer(call: DriverCall) -> str:
        seen.append([each.text for each in call.messages])
        return f"re {call.text}"

    agent = agent_on(state, answer, sessions={"strategy": "manual"}, trigger_history=WINDOW)
    asked = {"action": "new", **({} if session_id is None else {"id": session_id})}
    texts = [f"q{number}" for number in range(4)]
    # The clock stands still: all of them begin at the same time.
    results = [
        await run_agent_trigger(agent, "chat.message", {**given(text), "session": asked})
        for text in texts
    ]
    names = [result.session_id for result in results]
    assert len(set(names)) == len(texts)
    assert seen == [[text] for text in texts]
    for text, name in zip(texts, names, strict=True):
        page = await agent.conversation("t", session_id=name).history()
        assert [row.message.text for row in page.items] == [text, f"re {text}"]
    page = await agent.conversation("t").history(limit=100)
    assert len(page.items) == 2 * len(texts)


async def test_L119_an_id_that_somebody_else_has_is_an_error(state: SteppedAgentState) -> None:
    agent = agent_on(state, sessions={"strategy": "manual"}, trigger_history=WINDOW)
    asked = {**given("hers"), "session": {"id": "s"}, "user_key": "ann"}
    await run_agent_trigger(agent, "chat.message", asked)
    await say(agent, "his", "other")
    bob = agent.conversations(user_key="bob")
    elsewhere = agent.conversation("other", session_id="s")
    for call in (
        bob.session(key_of(), "s"),
        bob.get(key_of(), "s"),
        bob.rename(key_of(), "s", "mine"),
        bob.delete(key_of(), "s"),
        agent.conversations().session(key_of("other"), "s"),
        agent.conversations().get(key_of("other"), "s"),
        elsewhere.save_summary("mine"),
        elsewhere.truncate("hers"),
        elsewhere.delete_message("hers"),
    ):
        with pytest.raises(NotFoundError):
            await call
    assert (await elsewhere.history()).items == ()
    assert (await agent.conversation("t").get_summary("manual")) is None
    page = await agent.conversation("t", session_id="s").history()
    assert [row.message.text for row in page.items] == ["hers", "re hers"]
    own = await agent.conversations(user_key="ann").session(key_of(), "s")
    assert (own.title, own.user_key) == (None, "ann")
