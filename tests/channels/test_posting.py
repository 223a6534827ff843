"""Texts on a platform: what is posted, edited and split, without an agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta

import pytest

from vitehub_chat.channels.posting import post_reply
from vitehub_chat.channels.values import DeliveryPlan
from vitehub_chat.model.events import AgentEvent, RunFailed, RunFinished, RunStarted, TextDelta

STARTED = RunStarted(message_id="m1")
LATER = timedelta(minutes=1)


class Wall:
    """Posts by number; what each of them said, in order."""

    def __init__(self) -> None:
        self.posts: list[list[str]] = []
        self.edited = asyncio.Event()

    async def post(self, text: str, /) -> str:
        self.posts.append([text])
        return str(len(self.posts) - 1)

    async def edit(self, message_id: str, text: str, /) -> None:
        self.posts[int(message_id)].append(text)
        self.edited.set()


async def events(*given: AgentEvent) -> AsyncIterator[AgentEvent]:
    for event in given:
        yield event


def texts(*given: str) -> Iterable[AgentEvent]:
    return (TextDelta("1", text) for text in given)


async def test_what_was_posted_is_returned() -> None:
    wall = Wall()
    reply = events(STARTED, *texts("a", "b"), RunFinished())
    sent = await post_reply(reply, DeliveryPlan(), wall)
    assert [(each.message_id, each.text) for each in sent] == [("0", "ab")]


async def test_a_text_that_does_not_change_is_not_edited() -> None:
    wall = Wall()
    plan = DeliveryPlan(mode="stream", update_interval=timedelta(), placeholder="a")
    await post_reply(events(STARTED, *texts("a"), RunFinished()), plan, wall)
    assert wall.posts == [["a"]]


async def test_the_end_does_not_wait_for_the_interval() -> None:
    wall = Wall()
    plan = DeliveryPlan(mode="stream", update_interval=LATER, placeholder="...")

    async def reply() -> AsyncIterator[AgentEvent]:
        yield STARTED
        yield TextDelta("1", "a")
        await wall.edited.wait()
        yield TextDelta("1", "b")
        yield TextDelta("1", "c")
        yield RunFinished()

    async with asyncio.timeout(10):
        await post_reply(reply(), plan, wall)
    assert wall.posts == [["...", "a", "abc"]]


async def test_a_reply_that_breaks_off_shows_the_error_text_of_the_plan() -> None:
    wall = Wall()
    await post_reply(events(STARTED, *texts("half")), DeliveryPlan(error_text="Oops"), wall)
    assert wall.posts == [["Oops"]]


async def test_an_error_that_says_so_has_the_last_word() -> None:
    wall = Wall()
    plan = DeliveryPlan(error_text="Oops")
    assert await post_reply(events(STARTED, RunFailed(text=None)), plan, wall) == []
    await post_reply(events(STARTED, RunFailed(text="Closed")), plan, wall)
    assert wall.posts == [["Closed"]]


async def test_what_cannot_be_edited_is_posted_behind_the_placeholder() -> None:
    wall = Wall()
    plan = DeliveryPlan(mode="stream", placeholder="Looking")
    reply = events(STARTED, *texts("a", "b"), RunFinished())
    await post_reply(reply, plan, wall, can_edit=False)
    assert wall.posts == [["Looking"], ["ab"]]


async def test_a_failing_platform_is_told_and_the_reply_is_left() -> None:
    class Down(Wall):
        async def post(self, text: str, /) -> str:
            raise ConnectionError(text)

    with pytest.raises(ConnectionError):
        await post_reply(events(STARTED), DeliveryPlan(placeholder="..."), Down())


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a" * 10, ["a" * 10]),
        ("a" * 25, ["a" * 10, "a" * 10, "a" * 5]),
        ("one two three", ["one two", "three"]),
        ("line one\nline two", ["line one", "line two"]),
        ("a bcdefghijkl", ["a bcdefghi", "jkl"]),
        ("123456789 0", ["123456789", "0"]),
    ],
)
async def test_a_text_is_split_where_it_hurts_least(text: str, pieces: list[str]) -> None:
    wall = Wall()
    reply = events(STARTED, *texts(text), RunFinished())
    await post_reply(reply, DeliveryPlan(), wall, max_length=10)
    assert [post[-1] for post in wall.posts] == pieces
