"""The life of an agent: opening and closing its state, and calls without a trigger."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.support import Failing, Recorder, agent_of, rows, run, say, turn
from vitehub_chat import DriverCall, define_agent, open_agent_state, run_agent
from vitehub_chat.errors import ConfigError, InputError, StateClosedError
from vitehub_chat.model.events import DriverEvent, TextDelta
from vitehub_chat.model.messages import Message

VARIABLE = "VITEHUB_AGENT_STATE_URL"


async def test_a_state_given_by_url_opens_at_first_use(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "state.db"
    agent = agent_of("echo", f"file:{file}")
    assert not file.exists()
    await run(agent, turn(say("hi", "m1")))
    assert file.exists()
    await agent.aclose()


async def test_closing_repeats_and_another_use_opens_anew(tmp_path: Path) -> None:
    agent = agent_of(Recorder(), f"file:{tmp_path}/state.db")
    await agent.aclose()
    for number in (1, 2):
        async with agent:
            await run(agent, turn(say("hi", f"m{number}")))
        await agent.aclose()
    async with agent:
        assert len(await rows(agent.conversation("t"))) == 4
    await agent.aclose()


async def test_a_state_that_was_passed_in_stays_open(url: str) -> None:
    async with open_agent_state(url) as state:
        async with agent_of("echo", state) as agent:
            await run(agent, turn(say("hi", "m1")))
        later = agent_of("echo", state)
        assert len(await rows(later.conversation("t"))) == 2
        await later.aclose()
        assert len(await rows(later.conversation("t"))) == 2


async def test_a_state_that_was_passed_in_has_to_be_opened(url: str) -> None:
    agent = agent_of("echo", open_agent_state(url))
    with pytest.raises(StateClosedError):
        await run(agent, turn(say("hi", "m1")))


async def test_agents_share_a_state_but_no_conversation(url: str) -> None:
    async with open_agent_state(url) as state:
        one, two = (
            define_agent(name=name, driver="echo", capabilities=["chat"], state=state)
            for name in ("one", "two")
        )
        await run(one, turn(say("hi", "m1")))
        await run(two, turn(say("hi", "m1")))
        assert len(await rows(one.conversation("t"))) == 2
        assert (await one.conversations().sessions()).items[0].message_count == 2


async def test_the_environment_names_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, f"file:{tmp_path}/named.db")
    for given in (None, f"file:{tmp_path}/other.db"):
        async with agent_of("echo", given) as agent:
            await run(agent, turn(say("hi", f"m-{given}")))
    assert (tmp_path / "named.db").exists()
    assert not (tmp_path / "other.db").exists()


async def test_a_state_that_was_passed_in_is_not_replaced_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, f"file:{tmp_path}/named.db")
    async with open_agent_state("memory:") as state, agent_of("echo", state) as agent:
        await run(agent, turn(say("hi", "m1")))
        assert len(await rows(agent.conversation("t"))) == 2
    assert not (tmp_path / "named.db").exists()


async def test_what_needs_a_state_names_the_variable() -> None:
    agent = agent_of("echo")
    with pytest.raises(ConfigError, match=VARIABLE) as caught:
        await agent.conversation("t").history()
    assert caught.value.path == "state"


async def test_a_window_of_the_transcript_needs_a_state() -> None:
    driver = Recorder()
    agent = agent_of(driver, trigger_history={"source": "transcript", "max_messages": 2})
    with pytest.raises(ConfigError, match=VARIABLE) as caught:
        await run(agent, turn(say("hi", "m1")))
    assert caught.value.path == "trigger_history.source"
    assert driver.calls == []


class Closable:
    """A driver that knows whether it was closed."""

    kind = "closable"
    profile = model = window_tokens = None
    tools = ()

    def __init__(self) -> None:
        self.closed = 0

    async def stream(self, call: DriverCall, /) -> AsyncIterator[DriverEvent]:
        yield TextDelta("t", f"heard {call.text}")

    async def aclose(self) -> None:
        self.closed += 1


async def test_a_driver_is_closed_with_its_agent(any_url: str | None) -> None:
    driver = Closable()
    async with agent_of(driver, any_url) as agent:
        assert (await run(agent, turn(say("hi", "m1")))).text == "heard hi"
    await agent.aclose()
    assert driver.closed == 1


def test_one_agent_serves_several_event_loops(any_url: str | None) -> None:
    agent = agent_of("echo", any_url)
    for number in range(3):
        result = asyncio.run(run(agent, turn(say("hi", f"m{number}"))))
        assert result.status == "complete"
    asyncio.run(agent.aclose())


@pytest.mark.parametrize("state", ["None", "'memory:'", "'file:state.db'"])
def test_an_agent_that_is_left_open_does_not_hang_the_exit(tmp_path: Path, state: str) -> None:
    program = f"""
import asyncio
from vitehub_chat import chat, define_agent, run_agent_trigger
agent = define_agent(name="a", driver="echo", capabilities=[chat()], state={state})
message = {{"role": "user", "parts": [{{"type": "text", "text": "hi"}}]}}
given = {{"messages": [message], "run": {{"threadId": "t"}}}}
print(asyncio.run(run_agent_trigger(agent, "chat.message", given)).text)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "You said: hi\n", "")


async def test_a_direct_call_takes_a_text() -> None:
    driver = Recorder()
    result = await run_agent(agent_of(driver), "hi")
    assert (result.text, result.status) == ("answer 1", "complete")
    assert driver.texts == [["hi"]]


async def test_a_direct_call_takes_messages_as_they_are() -> None:
    driver = Recorder()
    messages: list[dict[str, Any] | Message] = [
        say("a", "x"),
        Message("y", "assistant", ({"type": "text", "text": "b"},)),
        say("c", "z"),
    ]
    await run_agent(agent_of(driver), messages)
    assert driver.texts == [["a", "b", "c"]]


async def test_a_direct_call_leaves_nothing(url: str) -> None:
    driver = Recorder()
    async with agent_of(driver, url, concurrency="reject", sessions=True) as agent:
        for _ in range(2):
            await run_agent(agent, [say("hi", "m1")])
        await asyncio.gather(*(run_agent(agent, [say("hi", "m1")]) for _ in range(3)))
        assert (await agent.conversations().sessions()).items == ()
    assert len(driver.calls) == 5


async def test_a_direct_call_needs_no_chat() -> None:
    agent = define_agent(name="a", driver=Recorder())
    assert (await run_agent(agent, "hi")).text == "answer 1"


@pytest.mark.parametrize(
    "prompt",
    ["", "  ", [], [say(" ")], None, 5, {"role": "user"}],
    ids=["empty", "blank", "no messages", "blank message", "none", "number", "mapping"],
)
async def test_a_direct_call_needs_something_to_say(prompt: Any) -> None:
    with pytest.raises(InputError):
        await run_agent(agent_of(Recorder()), prompt)


async def test_a_direct_call_raises_what_the_driver_raises() -> None:
    with pytest.raises(OSError, match="down"):
        await run_agent(agent_of(Failing(OSError("down"))), "hi")


async def test_a_direct_call_is_limited_by_the_timeout() -> None:
    async def never(_call: Any) -> str:
        await asyncio.Event().wait()
        return ""

    result = await run_agent(agent_of(never, timeout_ms=20), "hi")
    assert (result.status, result.finish_reason) == ("interrupted", "timeout")
