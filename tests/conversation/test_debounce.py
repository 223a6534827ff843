"""Debounce: a line runs when nobody has said anything for a while."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.conversation.conftest import SetScene
from tests.conversation.homes import ALL
from tests.conversation.scene import Scene, shorts
from tests.conversation.station import leftovers_of
from vitehub_chat import Agent, chat, define_agent, run_agent_trigger
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.model.results import RunResult

WAIT_S = 1.5


async def send_all(scene: Scene, *texts: str) -> list[asyncio.Task[Any]]:
    """Send messages one after the other, from both sites in turn."""
    sites = [scene.first, scene.second]
    return [await scene.enqueue(sites[n % 2], text) for n, text in enumerate(texts)]


async def test_C07_what_comes_in_the_wait_is_answered_together_what_comes_later_by_itself(
    set_scene: SetScene,
) -> None:
    scene = await set_scene("debounce")
    a, b, c = await send_all(scene, "A", "B", "C")
    await scene.advance(WAIT_S)
    await scene.first.begun("C")
    d = await scene.enqueue(scene.second, "D")
    await scene.first.release("C")
    assert await shorts(a, b, c) == ["coalesced C[A,B]", "coalesced C[A,B]", "complete C[A,B]"]
    assert (d.done(), await scene.count_waiting()) == (False, 1)
    await scene.advance(WAIT_S)
    await scene.second.release("D")
    assert await shorts(d) == ["complete D[]"]
    assert await scene.texts() == ["A", "B", "C", "C[A,B]", "D", "D[]"]
    await scene.check_nothing_is_left()


async def test_C08_a_message_alone_runs_after_the_wait_and_not_before(set_scene: SetScene) -> None:
    scene = await set_scene({"strategy": "debounce", "debounce_ms": 5000})
    [a] = await send_all(scene, "A")
    await scene.advance(4.999)
    assert (await scene.take(), a.done()) == (None, False)
    await scene.advance(0.001)
    await scene.first.release("A")
    assert await shorts(a) == ["complete A[]"]
    assert await scene.texts() == ["A", "A[]"]
    await scene.check_nothing_is_left()


async def test_every_message_begins_the_wait_anew(set_scene: SetScene) -> None:
    scene = await set_scene("debounce")
    a = await scene.enqueue(scene.first, "A")
    await scene.advance(1)
    b = await scene.enqueue(scene.second, "B")
    await scene.advance(1)
    assert (await scene.take(), a.done()) == (None, False)
    await scene.advance(0.5)
    await scene.second.release("B")
    assert await shorts(a, b) == ["coalesced B[A]", "complete B[A]"]
    await scene.check_nothing_is_left()


async def test_a_full_line_waits_no_longer(set_scene: SetScene) -> None:
    scene = await set_scene({"strategy": "debounce", "max_queue_size": 3})
    a, b = await send_all(scene, "A", "B")
    await scene.first.release("C")
    c = scene.first.send("C")
    assert await shorts(a, b, c) == ["coalesced C[A,B]", "coalesced C[A,B]", "complete C[A,B]"]
    await scene.check_nothing_is_left()


async def test_a_line_runs_before_its_oldest_message_expires(set_scene: SetScene) -> None:
    options = {"strategy": "debounce", "debounce_ms": 15_000, "queue_entry_ttl_ms": 40_000}
    scene = await set_scene(options)
    a = await scene.enqueue(scene.first, "A")
    await scene.advance(14)
    b = await scene.enqueue(scene.second, "B")
    await scene.advance(14)
    c = await scene.enqueue(scene.first, "C")
    # By then nobody is known to wait: the run may be at either site.
    await scene.advance(11.5)
    await scene.first.release("C")
    await scene.second.release("C")
    assert await shorts(a, b, c) == ["coalesced C[A,B]", "coalesced C[A,B]", "complete C[A,B]"]
    await scene.check_nothing_is_left()


async def test_a_wait_longer_than_a_message_may_wait_drops_nothing(set_scene: SetScene) -> None:
    options = {"strategy": "debounce", "debounce_ms": 60_000, "queue_entry_ttl_ms": 8_000}
    scene = await set_scene(options)
    a = await scene.enqueue(scene.first, "A")
    await scene.advance(7)
    await scene.first.release("A")
    assert await shorts(a) == ["complete A[]"]
    await scene.check_nothing_is_left()


async def test_who_leaves_in_the_wait_is_not_answered(set_scene: SetScene) -> None:
    scene = await set_scene("debounce")
    a, b = await send_all(scene, "A", "B")
    await scene.second.stop("B")
    assert await shorts(b) == ["interrupted"]
    await scene.advance(WAIT_S)
    await scene.first.release("A")
    assert await shorts(a) == ["complete A[]"]
    assert await scene.texts() == ["A", "A[]"]
    await scene.check_nothing_is_left()


@pytest.mark.parametrize("set_scene", ALL, indirect=True)
async def test_who_waits_too_long_for_the_line_to_settle_leaves_and_may_come_again(
    set_scene: SetScene,
) -> None:
    scene = await set_scene({"strategy": "debounce", "wait_timeout_ms": 60})
    # No time passes for the line, so it never settles.
    assert await shorts(scene.first.send("A")) == ["ChatBusyError timeout"]
    assert await scene.count_waiting() == 0
    await scene.advance(WAIT_S)
    assert (await scene.take(), await scene.calls()) == (None, [])
    scene = await set_scene({"strategy": "debounce", "wait_timeout_ms": 60_000})
    [again] = await send_all(scene, "A")
    await scene.advance(WAIT_S)
    await scene.first.release("A")
    assert await shorts(again) == ["complete A[]"]
    assert await scene.texts() == ["A", "A[]"]
    await scene.check_nothing_is_left()


async def test_a_repeat_in_the_wait_gets_the_same_answer(set_scene: SetScene) -> None:
    scene = await set_scene("debounce")
    [a] = await send_all(scene, "A")
    again = scene.second.send("A")
    await scene.second.ask("seats", count=len({scene.first, scene.second}) % 2 + 1)
    await scene.advance(WAIT_S)
    await scene.first.release("A")
    await scene.second.release("A")
    assert await shorts(a, again) == ["complete A[]", "complete A[]"]
    assert await scene.calls() == ["A[]"]
    await scene.check_nothing_is_left()


def stateless_agent(**options: Any) -> tuple[Agent, list[str]]:
    calls: list[str] = []

    async def answer(call: DriverCall) -> str:
        calls.append(f"{call.text}[{','.join(m.text for m in call.messages[:-1])}]")
        return f"re {call.text}"

    capability = chat({"concurrency": {"strategy": "debounce", **options}})
    return define_agent(name="a", driver=answer, capabilities=[capability]), calls


async def say_all(agent: Agent, *texts: str) -> list[RunResult]:
    results = await asyncio.gather(*(say(agent, text) for text in texts))
    assert sum((await leftovers_of(agent)).values()) == 0
    await agent.aclose()
    return results


async def say(agent: Agent, text: str) -> RunResult:
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    given = {"messages": [message], "run": {"threadId": "t"}}
    return await run_agent_trigger(agent, "chat.message", given)


def test_without_a_state_a_line_settles_in_the_process() -> None:
    agent, calls = stateless_agent(debounce_ms=20)
    [result] = asyncio.run(say_all(agent, "A"))
    assert (result.status, result.text) == ("complete", "re A")
    assert calls == ["A[]"]


def test_without_a_state_a_full_line_is_answered_together() -> None:
    agent, calls = stateless_agent(debounce_ms=60_000, max_queue_size=3)
    results = asyncio.run(say_all(agent, "A", "B", "C"))
    assert [result.status for result in results] == ["coalesced", "coalesced", "complete"]
    assert {result.text for result in results} == {"re C"}
    assert calls == ["C[A,B]"]
