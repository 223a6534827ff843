"""The end of a host, of an agent, and of an event loop, while messages are answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.agent.support import Gate
from tests.channels.scene import SetScene
from vitehub_chat.testing.scripted_channel import said


async def test_closing_waits_for_turns_and_answers(set_any_scene: SetScene) -> None:
    scene = await set_any_scene(stops=True)
    await scene.tell(said("a"))
    await scene.begun("a")
    posting = scene.platform.hold("post")
    closing = asyncio.create_task(scene.host.aclose())
    await asyncio.sleep(0)
    assert not closing.done()
    scene.release("a")
    posting.set()
    await closing
    assert scene.platform.texts("t1") == ["a[]"]


async def test_a_turn_that_takes_longer_than_the_grace_is_interrupted_and_posted_as_far_as_it_came(
    set_any_scene: SetScene,
) -> None:
    gate = Gate("Half a")
    scene = await set_any_scene(driver=gate, grace=timedelta(milliseconds=1))
    await scene.tell(said("a"))
    await gate.reached.wait()
    await scene.host.aclose()
    await scene.posted("Half a")
    assert gate.was_cancelled
    if scene.state is not None:
        assert [row.status for row in await scene.rows()] == ["complete", "interrupted"]


async def test_what_waits_at_the_end_is_answered_by_the_next_host(set_scene: SetScene) -> None:
    first = await set_scene(stops=True, grace=timedelta(milliseconds=1), trigger_history=None)
    await first.tell(said("a"))
    await first.begun("a")
    await first.tell(said("b"), said("c"))
    await first.host.aclose()
    assert first.driver.calls == ["a[]"]
    second = await set_scene(trigger_history=None)
    await second.host.start()
    await second.posted("b[]", "c[]")


async def test_closing_the_agent_stops_turns_and_posts_no_more(set_any_scene: SetScene) -> None:
    gate = Gate("Half a")
    scene = await set_any_scene(driver=gate)
    await scene.tell(said("a"))
    await gate.reached.wait()
    posting = scene.platform.hold("post")
    await scene.agent.aclose()
    posting.set()
    assert gate.was_cancelled
    assert scene.platform.posts == []


async def test_a_host_goes_on_after_it_was_closed_and_started(set_any_scene: SetScene) -> None:
    scene = await set_any_scene(trigger_history=None)
    async with scene.host:
        await scene.tell(said("a"))
    assert scene.platform.texts("t1") == ["a[]"]
    async with scene.host:
        await scene.tell(said("b"), said("c"))
        await scene.posted("a[]", "b[]", "c[]")


async def test_a_request_that_is_cancelled_at_any_moment_strands_no_message(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene(trigger_history=None)
    await scene.host.start()
    names = [f"m{number}" for number in range(25)]
    for steps, name in enumerate(names):
        telling = asyncio.create_task(scene.tell(said(name, thread=name)))
        for _ in range(steps):
            await asyncio.sleep(0)
        telling.cancel()
        await asyncio.wait({telling})
    for name in names:
        assert await scene.tell(said(name, thread=name)) == 200
    await scene.platform.until(lambda: len(scene.platform.posts) == len(names))
    await scene.quiet()
    assert sorted(scene.driver.calls) == sorted(f"{name}[]" for name in names)


async def test_a_message_that_waits_for_a_slot_at_the_end_is_answered_by_the_next_host(
    set_scene: SetScene,
) -> None:
    options: dict[str, Any] = {
        "concurrency": {"strategy": "parallel", "max_concurrent": 1},
        "trigger_history": None,
    }
    first = await set_scene(stops=True, grace=timedelta(milliseconds=1), **options)
    await first.tell(said("a"))
    await first.begun("a")
    await first.tell(said("b"))
    await first.host.aclose()
    second = await set_scene(**options)
    await second.host.start()
    await second.posted("b[]")


async def test_nothing_is_left_when_all_is_answered(set_any_scene: SetScene) -> None:
    scene = await set_any_scene()
    for number in range(30):
        await scene.tell(said(f"m{number}", thread=f"t{number}"))
    await scene.platform.until(lambda: len(scene.platform.posts) == 30)
    await scene.quiet()
    desk = await scene.agent.runtime().desk()
    assert (desk._last, desk._sending, len(desk.histories._looks._going_on)) == ({}, set(), 0)


async def test_several_event_loops_serve_one_agent(set_any_scene: SetScene) -> None:
    scene = await set_any_scene(driver=lambda call: call.text, trigger_history=None)
    await scene.host.start()
    answered = threading.Event()

    async def serve() -> None:
        for number in range(20):
            assert await scene.tell(said(f"other{number}")) == 200
        await scene.platform.until(lambda: len(scene.platform.posts) == 40)
        answered.set()
        await scene.host.aclose()

    thread = run_in_thread(serve)
    for number in range(20):
        assert await scene.tell(said(f"here{number}")) == 200
    await scene.platform.until(answered.is_set)
    await asyncio.to_thread(thread.join)
    expected = {f"{name}{number}" for name in ("here", "other") for number in range(20)}
    assert sorted(scene.platform.texts("t1")) == sorted(expected)
    assert await scene.tell(said("last")) == 200
    await scene.platform.until(lambda: len(scene.platform.posts) == 41)


def run_in_thread(serve: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    return thread
