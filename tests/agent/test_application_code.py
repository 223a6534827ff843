"""Functions of the application that raise where nobody expects it: the turn ends as it should."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.agent.support import Failing, Recorder, agent_of, rows, run, say, turn
from vitehub_chat import Capability, chat, define_agent, stream_agent_trigger
from vitehub_chat.conversation.replies import APOLOGY
from vitehub_chat.errors import ChatError


def cancels(*_given: object) -> str:
    raise asyncio.CancelledError


async def cancels_later(*_given: object) -> str:
    await asyncio.sleep(0)
    raise asyncio.CancelledError


def boom(*_given: object) -> str:
    raise ValueError("no")


BAD: list[Callable[..., Any]] = [cancels, cancels_later, boom]


class FailingPublicError(Exception):
    """An error whose public text cannot be read."""

    @property
    def public_message(self) -> str:
        raise ValueError("no")


class DriverError(Exception):
    """What a driver raises."""


class FalseText:
    """A value whose text cannot be read."""

    def __bool__(self) -> bool:
        raise ValueError("no")


@pytest.mark.parametrize("identity", BAD)
async def test_a_failing_identity_means_no_owner(
    url: str, identity: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="vitehub_chat")
    async with agent_of("echo", url, identity=identity) as agent:
        result = await run(agent, turn(say("hi", "m1")))
        assert result.status == "complete"
        [info] = (await agent.conversations().sessions()).items
        assert info.user_key is None
    assert "chat.identity.failed" in [record.message for record in caplog.records]


@pytest.mark.parametrize("filter_", [cancels, cancels_later])
async def test_a_filter_that_cancels_itself_is_an_error_and_no_stop(
    any_url: str | None, filter_: Callable[..., Any]
) -> None:
    driver = Recorder()
    async with agent_of(driver, any_url, filter=filter_) as agent:
        with pytest.raises(ChatError, match="cancelled itself"):
            await run(agent, turn(say("hi", "m1")))
    assert driver.calls == []


@pytest.mark.parametrize("placeholder", BAD)
async def test_a_failing_placeholder_is_unset(placeholder: Callable[..., Any]) -> None:
    driver = Recorder()
    agent = agent_of(driver, fallback_streaming_placeholder_text=placeholder)
    assert (await run(agent, turn(say("hi", "m1")))).status == "complete"
    assert "chat.placeholder" not in driver.calls[0].context


async def shown(agent: Any) -> list[str]:
    """Return the error texts that a UI stream shows."""
    stream = stream_agent_trigger(agent, "chat.message", turn(say("hi", "m1")))
    return [chunk["errorText"] async for chunk in stream if chunk["type"] == "error"]


@pytest.mark.parametrize("error_text", [*BAD, FalseText])
async def test_a_failing_error_text_hides_no_error(
    any_url: str | None, error_text: Callable[..., Any]
) -> None:
    driver = Failing(DriverError("down"), times=9)
    async with agent_of(driver, any_url, error_fallback_text=error_text) as agent:
        assert await shown(agent) == [APOLOGY]
        with pytest.raises(DriverError, match="down"):
            await run(agent, turn(say("hi", "m2")))


async def test_a_failing_public_message_hides_no_error(url: str) -> None:
    async with agent_of(Failing(FailingPublicError("down"), times=9), url) as agent:
        assert await shown(agent) == [APOLOGY]
        with pytest.raises(FailingPublicError, match="down"):
            await run(agent, turn(say("hi", "m2")))
        statuses = [status for _, _, status in await rows(agent.conversation("t"))]
        assert statuses == ["complete", "error", "complete", "error"]


async def test_a_failing_public_message_gives_way_to_the_configured_text() -> None:
    agent = agent_of(Failing(FailingPublicError("down")), error_fallback_text="Oops")
    assert await shown(agent) == ["Oops"]


class CancellingSink:
    """A sink of notes that cancels itself."""

    async def append(self, section: str, /, *, date: Any, flush_id: str) -> None:
        """Fail."""
        raise asyncio.CancelledError(section, date, flush_id)


class KeepingSink:
    """A sink of notes that cancels itself when it is to remove one."""

    features = frozenset({"remove"})

    async def append(self, section: str, /, *, date: Any, flush_id: str) -> None:
        """Take a section."""
        assert flush_id in section
        assert date

    async def remove(self, flush_id: str, /, *, date: Any) -> bool:
        """Fail."""
        raise asyncio.CancelledError(flush_id, date)


class CancellingEnd(Capability):
    """A capability that cancels itself when it is told the end of a turn."""

    id = "cancelling"

    async def finish(self, context: Any, result: Any, /) -> None:
        """Fail."""
        raise asyncio.CancelledError(context, result)


async def cancelling_summarizer(*_given: object, **_options: object) -> str:
    raise asyncio.CancelledError


SAID = "x" * 300
PRUNING: dict[str, Any] = {
    "memory": {"sink": CancellingSink()},
    "transcripts": {"prune": {"max_messages": 2}},
}
APPENDING: dict[str, Any] = {"memory": {"sink": CancellingSink(), "append_every_turn": True}}
CONDENSING: dict[str, Any] = {
    "trigger_history": {"source": "transcript", "max_messages": 1000},
    "context": {
        "estimator": "runes",
        "limit": 1000,
        "min_verbatim": 2,
        "summary_max": 200,
        "summarizer": cancelling_summarizer,
    },
}


@pytest.mark.parametrize(
    ("options", "event"),
    [
        (PRUNING, "chat.memory.flush_failed"),
        (APPENDING, "chat.memory.flush_failed"),
        (CONDENSING, "chat.context.roll_failed"),
        ({"capabilities": [CancellingEnd()]}, "chat.turn.failed"),
    ],
    ids=["pruning", "appending", "condensing", "finishing"],
)
async def test_what_cancels_itself_beside_a_turn_costs_no_answer(
    url: str, options: dict[str, Any], event: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="vitehub_chat")
    others = options.get("capabilities", [])
    settings = {name: each for name, each in options.items() if name != "capabilities"}
    agent = define_agent(
        name="a", driver=Recorder(), capabilities=[chat(settings), *others], state=url
    )
    async with agent:
        for number in range(1, 5):
            result = await run(agent, turn(say(SAID, f"m{number}")))
            assert (result.status, result.text) == ("complete", f"answer {number}")
        newest = (await rows(agent.conversation("t")))[-2:]
    assert newest == [("user", SAID, "complete"), ("assistant", "answer 4", "complete")]
    assert event in [record.message for record in caplog.records]


async def test_a_sink_that_cancels_itself_while_notes_are_deleted_is_an_error(url: str) -> None:
    memory = {"sink": KeepingSink(), "append_every_turn": True}
    async with agent_of("echo", url, memory=memory) as agent:
        await run(agent, turn(say("hi", "m1")))
        with pytest.raises(ChatError, match="cancelled itself"):
            await agent.conversation("t").clear(delete_notes=True)
