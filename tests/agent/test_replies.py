"""What people see before an answer, and instead of one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.agent.support import Failing, agent_of, prepare, run, say, turn
from vitehub_chat import AgentStream, stream_agent_trigger
from vitehub_chat.conversation.replies import APOLOGY
from vitehub_chat.errors import ChatBusyError, ConfigError
from vitehub_chat.model.events import RunFailed

ABSENT = object()


class Public(Exception):  # noqa: N818 - what people are told, not a kind of error
    """An error with a text for people."""

    def __init__(self, public_message: object) -> None:
        super().__init__("internal")
        self.public_message = public_message


async def placeholder_of(value: Any, **options: Any) -> object:
    given = turn(say("hi", "m1"), context={"name": "Ann"})
    prepared = await prepare(given, fallback_streaming_placeholder_text=value, **options)
    return prepared.context.get("chat.placeholder", ABSENT)


async def greet(context: Mapping[str, Any]) -> str:
    await asyncio.sleep(0)
    return f"one moment, {context['name']}"


def fail() -> str:
    raise ValueError


async def listen(stream: AgentStream, events: list[Any]) -> None:
    while True:
        events.append(await anext(stream))


async def shown_of(error: Exception, *, timeout_ms: int | None = None, **options: Any) -> list[Any]:
    agent = agent_of(Failing(error), **options)
    given = turn(say("hi"), timeout_ms=timeout_ms)
    stream = stream_agent_trigger(agent, "chat.message", given, output="events")
    events: list[Any] = []
    with pytest.raises(type(error)):
        await listen(stream, events)
    return [event.text for event in events if isinstance(event, RunFailed)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("wait", "wait"),
        ("", ""),
        (None, None),
        ([], None),
        (["only"], "only"),
        (lambda: "called", "called"),
        (lambda context: context["message"]["text"], "hi"),
        (greet, "one moment, Ann"),
        (lambda: None, None),
        (lambda: ["a"], ABSENT),
        (fail, ABSENT),
    ],
    ids=[
        *("text", "empty", "none", "no entry", "one entry", "callable", "of the context"),
        *("async", "callable of none", "callable of a list", "raising"),
    ],
)
async def test_what_a_placeholder_means(value: Any, expected: object) -> None:
    assert await placeholder_of(value) == expected


async def test_one_entry_of_a_list_is_drawn() -> None:
    drawn = {await placeholder_of(["a", "b"]) for _ in range(50)}
    assert drawn == {"a", "b"}


async def test_the_loading_text_comes_before_the_placeholder() -> None:
    assert await placeholder_of("wait", loading={"text": "loading"}) == "loading"


@pytest.mark.parametrize("value", [5, ["a", 5], {"text": "a"}])
def test_a_placeholder_of_another_type_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        agent_of(None, fallback_streaming_placeholder_text=value)
    assert caught.value.path is not None
    assert caught.value.path.startswith("fallback_streaming_placeholder_text")


async def test_without_an_error_text_there_is_an_apology() -> None:
    assert await shown_of(OSError("secret")) == [APOLOGY]


async def test_an_error_text_of_none_shows_nothing_even_of_a_public_error() -> None:
    assert await shown_of(Public("try later"), error_fallback_text=None) == [None]


@pytest.mark.parametrize("blank", ["", "  ", None, 5])
async def test_a_public_message_that_is_blank_does_not_count(blank: object) -> None:
    assert await shown_of(Public(blank), error_fallback_text="Oops") == ["Oops"]
    assert await shown_of(Public(blank)) == [APOLOGY]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda error: f"failed: {type(error).__name__}", "failed: Public"),
        (lambda: "no argument", "no argument"),
        (lambda _error: "", None),
        (lambda _error: None, None),
        (fail, APOLOGY),
    ],
    ids=["of the error", "without argument", "empty", "none", "raising"],
)
async def test_a_callable_decides_alone(function: Any, expected: str | None) -> None:
    assert await shown_of(Public("try later"), error_fallback_text=function) == [expected]


async def test_an_async_callable_is_awaited() -> None:
    async def tell(error: Exception) -> str:
        await asyncio.sleep(0)
        return f"failed: {error}"

    assert await shown_of(OSError("x"), error_fallback_text=tell) == ["failed: x"]


@pytest.mark.parametrize("where", ["option", "call"])
async def test_a_callable_that_takes_longer_than_the_turn_may_is_an_apology(where: str) -> None:
    async def never(_error: Exception) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    limits = {"timeout_ms": 20} if where == "option" else {}
    agent_options: dict[str, Any] = {"error_fallback_text": never, **limits}
    if where == "option":
        agent = agent_of(Failing(OSError("x")), **agent_options)
        stream = stream_agent_trigger(agent, "chat.message", turn(say("hi")))
        chunks = [chunk async for chunk in stream]
        assert [chunk["errorText"] for chunk in chunks if chunk["type"] == "error"] == [APOLOGY]
    else:
        assert await shown_of(OSError("x"), timeout_ms=20, **agent_options) == [APOLOGY]


async def test_an_error_text_is_neither_stored_nor_returned(url: str) -> None:
    driver = Failing(OSError("down"), "so far ")
    async with agent_of(
        driver,
        url,
        error_fallback_text="Oops",
        trigger_history={"source": "transcript", "max_messages": 9},
    ) as agent:
        with pytest.raises(OSError, match="down"):
            await run(agent, turn(say("one", "m1")))
        page = await agent.conversation("t").history()
        assert [(row.message.text, row.status) for row in page.items] == [
            ("one", "complete"),
            ("so far ", "error"),
        ]
        repeated = await run(agent, turn(say("one", "m1")))
        assert (repeated.status, repeated.text) == ("error", "so far ")
        await run(agent, turn(say("two", "m2")))
    assert [message.text for message in driver.calls[-1].messages] == ["one", "two"]


async def test_a_ui_stream_shows_the_error_and_ends_without_raising(any_url: str | None) -> None:
    async with agent_of(Failing(OSError("x"), "so far"), any_url) as agent:
        stream = stream_agent_trigger(agent, "chat.message", turn(say("hi")))
        kinds = [chunk["type"] async for chunk in stream]
        with pytest.raises(OSError, match="x"):
            await stream.result()
    assert kinds[0] == "start"
    assert "error" in kinds
    assert "text-delta" in kinds


async def test_a_stream_of_a_refused_message_raises_in_either_form() -> None:
    for output in ("ui-message-stream", "events"):
        driver_called = asyncio.Event()

        async def wait(_call: Any, called: asyncio.Event = driver_called) -> str:
            called.set()
            await asyncio.Event().wait()
            return ""

        agent = agent_of(wait, concurrency="reject")
        first = asyncio.create_task(run(agent, turn(say("a", "a"))))
        await driver_called.wait()
        stream = stream_agent_trigger(agent, "chat.message", turn(say("b", "b")), output=output)
        with pytest.raises(ChatBusyError):
            await anext(stream)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
