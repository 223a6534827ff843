"""Functions of the application that raise where nobody expects it: the turn ends as it should."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.agent.support import Failing, Recorder, agent_of, rows, run, say, turn
from vitehub_chat import stream_agent_trigger
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
