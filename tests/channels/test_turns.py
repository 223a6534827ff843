"""Turns of channels: once each, in order, in their place, whoever holds the lock."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.channels.scene import SetScene
from tests.conversation.scene import shorts
from tests.conversation.station import Ended, _end_of
from vitehub_chat import stream_agent_trigger
from vitehub_chat.channels.values import Author
from vitehub_chat.model.policies import LockScopeQuestion
from vitehub_chat.testing.scripted_channel import ScriptedChannel, said


async def test_a_burst_loses_nothing_and_runs_in_order(set_any_scene: SetScene) -> None:
    scene = await set_any_scene(trigger_history=None)
    names = [f"m{number}" for number in range(20)]
    for name in names:
        assert await scene.tell(said(name)) == 200
    await scene.posted(*(f"{name}[]" for name in names))
    assert scene.driver.most == 1


async def test_messages_of_one_request_run_in_order(set_any_scene: SetScene) -> None:
    scene = await set_any_scene(trigger_history=None)
    assert await scene.tell(said("a"), said("b"), said("c")) == 200
    await scene.posted("a[]", "b[]", "c[]")


async def test_waiting_messages_are_answered_together_with_queue(set_any_scene: SetScene) -> None:
    scene = await set_any_scene(stops=True, concurrency="queue", trigger_history=None)
    await scene.tell(said("a"))
    await scene.begun("a")
    await scene.tell(said("b"), said("c"), said("d"))
    scene.release("a", "d")
    await scene.posted("a[]", "d[b,c]")


async def test_a_redelivered_message_is_handled_once(set_any_scene: SetScene) -> None:
    scene = await set_any_scene()
    assert await scene.tell(said("a"), said("a")) == 200
    await scene.posted("a[]")
    assert await scene.tell(said("a")) == 200
    await scene.quiet()
    assert scene.driver.calls == ["a[]"]
    assert scene.platform.texts("t1") == ["a[]"]


async def test_a_redelivery_to_another_agent_on_the_store_is_handled_once(
    set_scene: SetScene,
) -> None:
    first = await set_scene(stops=True)
    await first.tell(said("a"))
    await first.begun("a")
    second = await set_scene(channel=first.channel)
    assert await second.tell(said("a")) == 200
    first.release("a")
    await first.posted("a[]")
    assert await second.tell(said("a")) == 200
    await second.quiet()
    assert second.driver.calls == []
    assert first.platform.texts("t1") == ["a[]"]


async def test_a_restart_keeps_the_transcript(set_scene: SetScene) -> None:
    first = await set_scene()
    await first.tell(said("a"))
    await first.posted("a[]")
    await first.close()
    second = await set_scene(channel=first.channel)
    await second.tell(said("a"), said("b"))
    await second.posted("a[]", "b[a,a[]]")
    assert second.driver.calls == ["b[a,a[]]"]


async def test_C12_an_own_message_starts_no_turn_and_makes_no_claim(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene()
    assert await scene.tell(said("a", author="bot")) == 200
    await scene.quiet()
    assert scene.driver.calls == []
    assert await scene.texts() == []
    # With a claim this would be a repeat.
    assert await scene.tell(said("a", author="u1")) == 200
    await scene.posted("a[]")


async def test_other_bots_are_answered(set_any_scene: SetScene) -> None:
    scene = await set_any_scene()
    await scene.tell(said("a", author=Author(id="b9", name="Deploy", is_bot=True)))
    await scene.posted("a[]")


async def test_C14_the_scope_of_the_channel_counts_if_the_option_is_unset(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene(stops=True, channel=ScriptedChannel(lock_scope="channel"))
    await scene.tell(said("a", thread="t1"))
    await scene.begun("a")
    await scene.tell(said("b", thread="t2"))
    await scene.tell(said("c", thread="t3", channel="c2"))
    await scene.begun("c")
    scene.release("a", "b", "c")
    await scene.posted("b[]", thread="t2")
    assert scene.driver.calls == ["a[]", "c[]", "b[]"]


async def test_C14_the_option_wins_over_the_scope_of_the_channel(set_any_scene: SetScene) -> None:
    scene = await set_any_scene(
        stops=True, lock_scope="thread", channel=ScriptedChannel(lock_scope="channel")
    )
    await scene.tell(said("a", thread="t1"))
    await scene.tell(said("b", thread="t2"))
    await scene.begun("a")
    await scene.begun("b")
    scene.release("a", "b")
    await scene.posted("b[]", thread="t2")


async def test_C13_a_callable_scope_is_told_what_a_direct_message_is(
    set_any_scene: SetScene,
) -> None:
    asked: list[tuple[str | None, str | None, bool]] = []

    def scope(question: LockScopeQuestion) -> str:
        asked.append((question.channel, question.thread, question.is_dm))
        return "channel" if question.is_dm else "thread"

    scene = await set_any_scene(lock_scope=scope)
    await scene.tell(said("a", is_dm=True), said("b", thread="t2"))
    await scene.posted("a[]")
    assert asked == [("scripted:c1", "t1", True), ("scripted:c1", "t2", False)]


async def test_C17_a_dropped_message_is_remembered(set_stateless_scene: SetScene) -> None:
    scene = await set_stateless_scene(stops=True, concurrency="drop")
    await scene.tell(said("m1"))
    await scene.begun("m1")
    assert await scene.tell(said("m2")) == 200
    assert [message.id for message in await scene.cached()] == ["scripted:m1", "scripted:m2"]
    scene.release("m1", "m3")
    await scene.posted("m1[]")
    await scene.tell(said("m3"))
    await scene.posted("m1[]", "m3[m1,m1[],m2]")


async def test_C17_a_dropped_message_is_not_recorded_and_not_answered(set_scene: SetScene) -> None:
    scene = await set_scene(stops=True, concurrency="drop")
    await scene.tell(said("m1"))
    await scene.begun("m1")
    assert await scene.tell(said("m2")) == 200
    scene.release("m1")
    await scene.posted("m1[]")
    await scene.quiet()
    assert await scene.texts() == ["m1", "m1[]"]
    assert scene.driver.calls == ["m1[]"]


@pytest.mark.parametrize(("strategy", "status"), [("drop", 200), ("reject", 409)])
async def test_C18_a_refused_message_runs_when_it_comes_again(
    set_any_scene: SetScene, strategy: str, status: int
) -> None:
    scene = await set_any_scene(stops=True, concurrency=strategy, trigger_history=None)
    await scene.tell(said("m1"))
    await scene.begun("m1")
    assert await scene.tell(said("m2")) == status
    scene.release("m1", "m2")
    await scene.posted("m1[]")
    await scene.quiet()
    assert await scene.tell(said("m2")) == 200
    await scene.posted("m1[]", "m2[]")


async def test_a_redelivered_message_comes_after_what_was_said_since(
    set_stateless_scene: SetScene,
) -> None:
    scene = await set_stateless_scene(stops=True, concurrency="drop")
    await scene.tell(said("m1"))
    await scene.begun("m1")
    await scene.tell(said("m2"), said("m3"))
    scene.release("m1", "m2")
    await scene.posted("m1[]")
    await scene.quiet()
    await scene.tell(said("m2"))
    await scene.posted("m1[]", "m2[m1,m1[],m3]")


async def test_a_full_queue_asks_for_the_message_again_later(set_any_scene: SetScene) -> None:
    line = {"strategy": "queue", "max_queue_size": 1, "on_queue_full": "reject"}
    scene = await set_any_scene(stops=True, concurrency=line)
    await scene.tell(said("a"))
    await scene.begun("a")
    assert [await scene.tell(said("b")), await scene.tell(said("c"))] == [200, 429]
    scene.release("a", "b")
    await scene.posted("a[]", "b[a,a[]]")


async def test_a_pushed_out_message_is_not_answered(set_any_scene: SetScene) -> None:
    line = {"strategy": "queue", "max_queue_size": 1, "on_queue_full": "drop-oldest"}
    scene = await set_any_scene(stops=True, concurrency=line, trigger_history=None)
    await scene.tell(said("a"))
    await scene.begun("a")
    await scene.tell(said("b"), said("c"))
    scene.release("a", "c")
    await scene.posted("a[]", "c[]")
    await scene.quiet()
    assert scene.driver.calls == ["a[]", "c[]"]


async def test_C26_groups_of_one_channel_are_answered_in_their_threads(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene(
        stops=True, concurrency="queue", lock_scope="channel", trigger_history=None
    )
    await scene.tell(said("A", thread="t1"))
    await scene.begun("A")
    await scene.tell(said("B", thread="t2"), said("C", thread="t1"), said("D", thread="t2"))
    scene.release("A", "C", "D")
    await scene.posted("A[]", "C[]", thread="t1")
    await scene.posted("D[B]", thread="t2")
    assert scene.driver.calls == ["A[]", "D[B]", "C[]"]


async def test_C26_an_answer_goes_to_its_thread_when_a_direct_caller_holds_the_lock(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene(stops=True, lock_scope="agent", trigger_history=None)
    message = {"id": "A", "role": "user", "parts": [{"type": "text", "text": "A"}]}
    given = {"messages": [message], "run": {"channel_id": "portal", "thread_id": "p1"}}
    stream = stream_agent_trigger(scene.agent, "chat.message", given, output="events")
    caller: asyncio.Task[Ended] = asyncio.create_task(_end_of(stream))
    await scene.begun("A")
    await scene.tell(said("B", thread="t2"))
    scene.release("A", "B")
    await scene.posted("B[]", thread="t2")
    assert await shorts(caller) == ["complete A[]"]
    assert [post.thread for post in scene.platform.posts] == ["t2"]


async def test_an_answer_goes_to_its_thread_when_another_process_holds_the_lock(
    set_scene: SetScene,
) -> None:
    options: dict[str, Any] = {"lock_scope": "channel", "trigger_history": None, "stops": True}
    first = await set_scene(**options)
    second = await set_scene(**options, channel=first.channel)
    await first.tell(said("A", thread="t1"))
    await first.begun("A")
    await second.tell(said("B", thread="t2"))
    first.release("A", "B")
    await first.posted("A[]", thread="t1")
    await first.posted("B[]", thread="t2")
    assert (first.driver.calls, second.driver.calls) == (["A[]", "B[]"], [])


async def test_parallel_turns_of_a_thread_wait_for_a_slot_as_stored_messages(
    set_any_scene: SetScene,
) -> None:
    line = {"strategy": "parallel", "max_concurrent": 2}
    scene = await set_any_scene(stops=True, concurrency=line, trigger_history=None)
    for name in "abcd":
        assert await scene.tell(said(name)) == 200
    await scene.begun("a")
    await scene.begun("b")
    scene.release("b", "c")
    await scene.begun("c")
    scene.release("a", "d")
    await scene.platform.until(lambda: len(scene.platform.posts) == 4)
    assert scene.driver.most == 2
    assert sorted(scene.platform.texts("t1")) == ["a[]", "b[]", "c[]", "d[]"]


async def test_a_debounced_message_is_run_once_its_line_has_settled(
    set_any_scene: SetScene, clock: Any
) -> None:
    line = {"strategy": "debounce", "debounce_ms": 40}
    scene = await set_any_scene(concurrency=line, trigger_history=None)
    await scene.tell(said("a"), said("b"))
    if scene.state is not None:
        clock.advance(milliseconds=50)
    await scene.posted("b[a]")


async def test_a_filtered_message_is_neither_answered_nor_remembered(
    set_any_scene: SetScene,
) -> None:
    scene = await set_any_scene(filter=lambda message, _context: message.text != "no")
    assert await scene.tell(said("no")) == 200
    await scene.tell(said("yes"))
    await scene.posted("yes[]")
    assert await scene.texts() == ["yes", "yes[]"]


async def test_a_message_without_anything_to_see_is_passed_over(set_any_scene: SetScene) -> None:
    scene = await set_any_scene()
    assert await scene.tell(said("a", " "), said("b")) == 200
    await scene.posted("b[]")
    assert scene.driver.calls == ["b[]"]


async def test_a_payload_names_no_session(set_scene: SetScene) -> None:
    scene = await set_scene(sessions=True)
    facts = {"sessionId": "s1", "session_id": "s1", "chat": {"sessionId": "s1"}}
    inbound = said("a")
    told = type(inbound)(
        target=inbound.target,
        message_id="a",
        author=inbound.author,
        parts=inbound.parts,
        facts=facts,
    )
    await scene.tell(told)
    await scene.posted("a[]")
    rows = await scene.rows()
    assert [row.session_id for row in rows] == [None, None]
    assert rows[0].message.metadata["channel"]["sessionId"] == "s1"
