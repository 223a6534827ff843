"""The echo driver."""

from __future__ import annotations

import pytest

from vitehub_chat.agent.driver import Driver, DriverCall
from vitehub_chat.agent.drivers.echo import create
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.events import Done, DriverEvent, TextDelta
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import MediaPart, TextPart


def said(*texts: str) -> DriverCall:
    return DriverCall(messages=tuple(Message(None, "user", (TextPart(text),)) for text in texts))


async def answer(driver: Driver, call: DriverCall) -> list[DriverEvent]:
    return [event async for event in driver.stream(call)]


def text_of(events: list[DriverEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["hi"], "You said: hi"),
        (["a", "hi"], "You said: hi (1 earlier message)"),
        (["a", "b", "hi"], "You said: hi (2 earlier messages)"),
    ],
)
async def test_the_answer_shows_what_was_said_and_how_much_came_before(
    texts: list[str], expected: str
) -> None:
    assert text_of(await answer(create(), said(*texts))) == expected


async def test_the_answer_comes_in_a_few_deltas_and_ends_with_stop() -> None:
    events = await answer(create(), said("a longer text"))
    assert sum(isinstance(event, TextDelta) for event in events) == 4
    assert events[-1] == Done("stop")


async def test_a_message_without_text_is_named() -> None:
    call = DriverCall(messages=(Message(None, "user", (MediaPart("image", "image/png", "AA=="),)),))
    assert text_of(await answer(create({}), call)) == "You said: (no text)"


async def test_a_reply_replaces_the_echo() -> None:
    assert text_of(await answer(create({"reply": "fixed"}), said("hi"))) == "fixed"


async def test_an_empty_reply_is_an_empty_answer() -> None:
    assert text_of(await answer(create({"reply": ""}), said("hi"))) == ""


@pytest.mark.parametrize(
    ("config", "path", "hint"),
    [
        ({"replly": "x"}, "driver.replly", "did you mean 'reply'?"),
        ({"reply": 3}, "driver.reply", None),
    ],
)
def test_a_wrong_configuration_is_named(
    config: dict[str, object], path: str, hint: str | None
) -> None:
    with pytest.raises(ConfigError) as caught:
        create(config)
    assert (caught.value.path, caught.value.hint) == (path, hint)
