"""How an answer is shown on a channel: whole or growing, before it, instead of it, after it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.agent.support import Failing, Gate
from tests.channels.scene import SetScene
from vitehub_chat.conversation.replies import APOLOGY
from vitehub_chat.model.events import Done, TextDelta, ToolCall, ToolResult
from vitehub_chat.testing.scripted_channel import Post, ScriptedChannel, said

QUICK = {"stream": True, "streaming_update_interval_ms": 1}
SLOW = {"stream": True, "streaming_update_interval_ms": 60_000}


class PublicError(Exception):
    """An error with a text for people."""

    public_message = "The shop is closed."


class InternalError(Exception):
    """An error without one."""


def only(posts: list[Post]) -> list[str]:
    assert len(posts) == 1
    return posts[0].versions


async def test_an_answer_is_posted_whole_by_default(set_any_scene: SetScene) -> None:
    gate = Gate("One. ", "Two.")
    scene = await set_any_scene(driver=gate)
    await scene.tell(said("a"))
    await gate.reached.wait()
    assert scene.platform.posts == []
    gate.open()
    await scene.posted("One. Two.")
    await scene.quiet()
    assert only(scene.platform.posts) == ["One. Two."]


async def test_a_growing_answer_is_edited_and_ends_with_its_whole_text(
    set_any_scene: SetScene,
) -> None:
    gate = Gate("One. ", "Two.")
    scene = await set_any_scene(driver=gate, **QUICK)
    await scene.tell(said("a"))
    await scene.posted("One. Two.")
    gate.open()
    await scene.quiet()
    versions = only(scene.platform.posts)
    assert (versions[0], versions[-1]) == ("...", "One. Two.")


async def test_a_growing_answer_is_not_edited_before_the_interval_is_over(
    set_any_scene: SetScene,
) -> None:
    more = asyncio.Event()

    async def answer(_call: Any) -> AsyncIterator[str]:
        for number in range(50):
            yield f"{number} "
        await more.wait()
        for number in range(50, 100):
            yield f"{number} "

    scene = await set_any_scene(driver=answer, **SLOW)
    await scene.tell(said("a"))
    await scene.platform.until(lambda: bool(scene.platform.posts))
    await scene.platform.until(lambda: len(scene.platform.posts[0].versions) == 2)
    more.set()
    await scene.quiet()
    versions = only(scene.platform.posts)
    assert len(versions) == 3
    assert versions[-1].split() == [str(number) for number in range(100)]


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"fallback_streaming_placeholder_text": "One moment"}, "One moment"),
        ({"fallback_streaming_placeholder_text": lambda: 5}, "..."),
        ({"fallback_streaming_placeholder_text": lambda: "Hm"}, "Hm"),
        ({}, "..."),
        ({"fallback_streaming_placeholder_text": None}, "Text"),
        ({"fallback_streaming_placeholder_text": []}, "Text"),
    ],
    ids=["T25-text", "T26-no-text", "callable", "unset", "None", "T24-empty-list"],
)
async def test_the_placeholder_comes_first(
    set_stateless_scene: SetScene, options: dict[str, Any], first: str
) -> None:
    scene = await set_stateless_scene(driver=lambda _: "Text", **QUICK, **options)
    await scene.tell(said("a"))
    await scene.posted("Text")
    assert only(scene.platform.posts)[0] == first


async def test_loading_is_posted_first_and_the_answer_follows_whole(
    set_any_scene: SetScene,
) -> None:
    gate = Gate("One. ", "Two.")
    scene = await set_any_scene(driver=gate, loading={"text": "Looking"})
    await scene.tell(said("a"))
    await gate.reached.wait()
    await scene.posted("Looking")
    gate.open()
    await scene.posted("One. Two.")
    assert only(scene.platform.posts) == ["Looking", "One. Two."]


async def test_loading_stays_where_nothing_can_be_edited(set_stateless_scene: SetScene) -> None:
    channel = ScriptedChannel(features=frozenset())
    scene = await set_stateless_scene(channel=channel, loading={"text": "Looking"})
    await scene.tell(said("a"))
    await scene.posted("Looking", "a[]")


async def test_a_channel_that_cannot_edit_gets_a_growing_answer_whole(
    set_stateless_scene: SetScene,
) -> None:
    scene = await set_stateless_scene(channel=ScriptedChannel(features=frozenset()), **QUICK)
    await scene.tell(said("a"))
    await scene.posted("a[]")
    assert only(scene.platform.posts) == ["a[]"]


@pytest.mark.parametrize("options", [QUICK, {"loading": {"text": "..."}}], ids=["grows", "whole"])
@pytest.mark.parametrize("answer", ["", " \n"])
async def test_an_empty_answer_does_not_overwrite_what_was_posted(
    set_stateless_scene: SetScene, options: dict[str, Any], answer: str
) -> None:
    scene = await set_stateless_scene(driver=lambda _: answer, **options)
    await scene.tell(said("a"))
    await scene.posted("...")
    await scene.quiet()
    assert only(scene.platform.posts) == ["..."]


async def test_an_empty_answer_posts_nothing(set_any_scene: SetScene) -> None:
    scene = await set_any_scene(driver=lambda _: "")
    await scene.tell(said("a"))
    await scene.quiet()
    assert scene.platform.posts == []


async def test_text_around_a_tool_call_is_posted_in_paragraphs(set_any_scene: SetScene) -> None:
    async def answer(_call: Any) -> AsyncIterator[Any]:
        yield TextDelta("1", "I look.")
        yield ToolCall("c1", "search", {})
        yield ToolResult("c1", "search", "42")
        yield TextDelta("2", "It is 42.")
        yield Done("stop")

    scene = await set_any_scene(driver=answer)
    await scene.tell(said("a"))
    await scene.posted("I look.\n\nIt is 42.")


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"error_fallback_text": "Oops"}, InternalError("secret"), "Oops"),
        ({"error_fallback_text": "Oops"}, PublicError("secret"), "The shop is closed."),
        ({}, InternalError("secret"), APOLOGY),
        ({"error_fallback_text": lambda error: type(error).__name__}, InternalError(), None),
    ],
    ids=["T28", "T29", "unset", "callable"],
)
async def test_a_failed_run_is_told_in_its_thread(
    set_any_scene: SetScene, options: dict[str, Any], error: Exception, text: str | None
) -> None:
    scene = await set_any_scene(driver=Failing(error), **options)
    await scene.tell(said("a"))
    await scene.posted(text or type(error).__name__)
    await scene.tell(said("b"))
    await scene.posted(text or type(error).__name__, "fine")
    if scene.state is not None:
        assert "error" in [row.status for row in await scene.rows()]


@pytest.mark.parametrize("given", [None, lambda _error: ""], ids=["T27-None", "falsy"])
async def test_T27_a_failed_run_is_not_told_without_an_error_text(
    set_any_scene: SetScene, given: Any
) -> None:
    scene = await set_any_scene(driver=Failing(InternalError()), error_fallback_text=given)
    await scene.tell(said("a"))
    await scene.quiet()
    assert scene.platform.posts == []


async def test_the_error_text_takes_the_place_of_the_placeholder(
    set_stateless_scene: SetScene,
) -> None:
    scene = await set_stateless_scene(
        driver=Failing(InternalError()), error_fallback_text="Oops", **QUICK
    )
    await scene.tell(said("a"))
    await scene.posted("Oops")
    assert only(scene.platform.posts) == ["...", "Oops"]


async def test_the_error_text_does_not_take_back_what_was_said(
    set_stateless_scene: SetScene,
) -> None:
    more = asyncio.Event()

    async def answer(_call: Any) -> AsyncIterator[str]:
        yield "It is"
        await more.wait()
        raise InternalError

    scene = await set_stateless_scene(driver=answer, error_fallback_text="Oops", **QUICK)
    await scene.tell(said("a"))
    await scene.posted("It is")
    more.set()
    await scene.posted("It is", "Oops")


async def test_the_error_text_never_reaches_the_model(set_any_scene: SetScene) -> None:
    driver = Failing(InternalError())
    scene = await set_any_scene(driver=driver, error_fallback_text="Oops")
    await scene.tell(said("a"))
    await scene.posted("Oops")
    await scene.tell(said("b"))
    await scene.posted("Oops", "fine")
    assert [[each.text for each in call.messages] for call in driver.calls] == [["a"], ["a", "b"]]


async def test_nothing_is_posted_by_itself_with_manual_delivery(set_any_scene: SetScene) -> None:
    scene = await set_any_scene(delivery="manual")
    await scene.tell(said("a"))
    await scene.quiet()
    assert (scene.driver.calls, scene.platform.posts) == (["a[]"], [])
    assert await scene.texts() == ["a", "a[]"]


async def test_an_answer_that_cannot_be_posted_is_logged_and_stays_recorded(
    set_any_scene: SetScene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "vitehub_chat.conversation")
    scene = await set_any_scene()
    scene.platform.fail("post", ConnectionError("to https://token@host"))
    await scene.tell(said("a"))
    await scene.quiet()
    await scene.tell(said("b"))
    await scene.posted("b[a,a[]]")
    assert await scene.texts() == ["a", "a[]", "b", "b[a,a[]]"]
    record = caplog.records[0]
    assert (record.getMessage(), vars(record)["code"]) == ("chat.turn.failed", "delivery_failed")
    assert "token" not in caplog.text


async def test_an_edit_that_fails_leaves_what_was_posted(
    set_stateless_scene: SetScene,
) -> None:
    scene = await set_stateless_scene(**QUICK)
    scene.platform.fail("edit", ConnectionError())
    await scene.tell(said("a"))
    await scene.quiet()
    assert scene.platform.texts("t1") == ["..."]
    await scene.tell(said("b"))
    await scene.posted("...", "b[a,a[]]")


async def test_answers_of_a_thread_are_posted_in_the_order_of_their_turns(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene(trigger_history=None)
    posting = scene.platform.hold("post", times=1)
    await scene.tell(said("a"), said("b"), said("c"))
    await scene.platform.until(lambda: len(scene.driver.calls) == 3)
    await scene.turns_over()
    posting.set()
    await scene.posted("a[]", "b[]", "c[]")


async def test_a_slow_platform_does_not_hold_up_other_threads(set_any_scene: SetScene) -> None:
    scene = await set_any_scene(stops=True, trigger_history=None)
    await scene.tell(said("a"))
    await scene.begun("a")
    posting = scene.platform.hold("post")
    scene.release("a", "b")
    await scene.tell(said("b", thread="t2"))
    await scene.begun("b")
    posting.set()
    await scene.posted("a[]")
    await scene.posted("b[]", thread="t2")


async def test_a_long_answer_is_split_at_words(set_stateless_scene: SetScene) -> None:
    scene = await set_stateless_scene(
        channel=ScriptedChannel(max_length=10), driver=lambda _: "one two three four"
    )
    await scene.tell(said("a"))
    await scene.posted("one two", "three four")


async def test_an_answer_that_grows_beyond_a_post_goes_on_in_the_next(
    set_stateless_scene: SetScene,
) -> None:
    gate = Gate("one two ", "three ", "four")
    scene = await set_stateless_scene(channel=ScriptedChannel(max_length=10), driver=gate, **QUICK)
    await scene.tell(said("a"))
    await scene.posted("one two", "three four")
    gate.open()
    await scene.quiet()
    assert [post.text for post in scene.platform.posts] == ["one two", "three four"]
